"""Finalizers of jobs that runners run: on the server, in the transaction of the end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest
from pydantic import BaseModel
from tests.conftest import Connect
from tests.server.conftest import AsRole, client_of, make_token, running
from tests.server.runner_calls import claim_one, register
from tests.server.test_jobs import is_problem

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings


class Report(BaseModel):
    rows: int


@pytest.fixture
async def queue_app(database: str, connect: Connect) -> AsyncIterator[Fenceline]:
    """An app with finalizers; the server has it, and so has the runner, as it were."""
    await (await connect()).execute("create table outcome (job text primary key, rows integer, n integer)")
    async with Fenceline(database) as app:

        @app.job()
        async def ingest(n: int = 0) -> Report: ...  # type: ignore[empty-body]  # a runner runs it

        @ingest.finalizer
        async def keep(conn: Any, job: Any, result: Report, args: dict[str, Any]) -> None:
            await conn.execute("insert into outcome values ($1, $2, $3)", job.id, result.rows, args.get("n", 0))
            if result.rows < 0:
                raise ValueError("no rows")

        @app.job()
        async def blocking() -> dict[str, int]: ...  # type: ignore[empty-body]  # as above

        @blocking.finalizer
        def keep_blocking(conn: Any, job: Any, result: dict[str, int]) -> None:
            conn.execute("insert into outcome values (%s, %s, 0)", (job.id, result["rows"]))

        @app.job()
        async def plain() -> int: ...  # type: ignore[empty-body]  # as above

        yield app


@pytest.fixture
async def runner(as_role: AsRole) -> httpx.AsyncClient:
    return await as_role("runner")


async def kept(connection: "asyncpg.Connection[asyncpg.Record]") -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await connection.fetch("select job, rows, n from outcome order by job")]


@pytest.mark.parametrize("kind, n", [("ingest", 5), ("blocking", 0)])
async def test_a_finalizer_runs_once_with_the_end(
    runner: httpx.AsyncClient, queue_app: Fenceline, connect: Connect, kind: str, n: int
) -> None:
    job = await queue_app.enqueue(kind, {"n": 5} if n else {})
    attempt = await claim_one(runner)
    first = await attempt.finish(result={"rows": 3}, metadata={"host": "h"})
    assert (first.status_code, first.json()["status"], first.json()["result"]) == (200, "succeeded", {"rows": 3})
    connection = await connect()
    assert await kept(connection) == [(job.id, 3, n)]
    again = await attempt.finish(result={"rows": 3})
    assert (again.status_code, again.json()) == (200, first.json())
    assert is_problem(await attempt.finish(result={"rows": 4}), 409, "stale_attempt")
    assert await kept(connection) == [(job.id, 3, n)]
    assert await connection.fetchval("select metadata::text from fenceline.history") == '{"host": "h"}'


async def test_the_same_end_sent_twice_at_once_is_kept_once(
    runner: httpx.AsyncClient, queue_app: Fenceline, connect: Connect
) -> None:
    job = await queue_app.enqueue("ingest")
    attempt = await claim_one(runner)
    ends = await asyncio.gather(*(attempt.finish(result={"rows": 1}) for _ in range(4)))
    assert [end.status_code for end in ends] == [200] * 4
    assert await kept(await connect()) == [(job.id, 1, 0)]


async def test_what_a_finalizer_raises_fails_the_attempt_and_undoes_its_writes(
    runner: httpx.AsyncClient, queue_app: Fenceline, connect: Connect
) -> None:
    job = await queue_app.enqueue("ingest", max_attempts=1)
    attempt = await claim_one(runner)
    response = await attempt.finish(result={"rows": -1})
    assert (response.status_code, response.json()["status"]) == (200, "failed")
    assert response.json()["error"]["message"] == "no rows"
    assert await kept(await connect()) == []
    assert await job.status() == "failed"


async def test_a_stale_attempt_finalizes_nothing(
    runner: httpx.AsyncClient, queue_app: Fenceline, connect: Connect
) -> None:
    job = await queue_app.enqueue("ingest")
    attempt = await claim_one(runner)
    await job.cancel(force=True)
    assert is_problem(await attempt.finish(result={"rows": 1}), 409, "stale_attempt")
    assert await kept(await connect()) == []


async def test_a_failure_needs_no_finalizer(runner: httpx.AsyncClient, queue_app: Fenceline, connect: Connect) -> None:
    await queue_app.enqueue("ingest")
    attempt = await claim_one(runner)
    assert (await attempt.finish("failed", error="no", retry=False)).json()["status"] == "failed"
    assert await kept(await connect()) == []


async def test_a_batch_runs_finalizers_too(runner: httpx.AsyncClient, queue_app: Fenceline, connect: Connect) -> None:
    runner_id = await register(runner)
    items = []
    for kind in ("plain", "ingest"):
        await queue_app.enqueue(kind)
        attempt = await claim_one(runner, runner_id)
        result = {"rows": 2} if kind == "ingest" else 1
        items.append({"job": attempt.job, "attempt_id": attempt.attempt_id, "status": "succeeded", "result": result})
    for verdict in ("accepted", "already"):
        response = await runner.post("/v1/jobs/finish", json={"attempts": items})
        assert [item["verdict"] for item in response.json()["attempts"]] == [verdict] * 2
    assert await kept(await connect()) == [(items[1]["job"], 2, 0)]


async def test_a_server_without_the_app_answers_503_for_kinds_with_a_finalizer(
    runner: httpx.AsyncClient, queue_app: Fenceline, database: str, connect: Connect
) -> None:
    """The database knows from a server, or a worker, with the app that there is one."""
    settings = ServerSettings(maintain=False, token_cache_seconds=0.0)
    async with Fenceline(database) as without, running(create_app(settings, without)) as bare:
        token = await make_token(queue_app, "runner")
        async with client_of(bare, token) as client:
            job = await queue_app.enqueue("ingest")
            attempt = await claim_one(client)
            response = await attempt.finish(result={"rows": 1})
            assert is_problem(response, 503, "finalizer_missing")
            assert response.headers["retry-after"]
            item = {"job": attempt.job, "attempt_id": attempt.attempt_id, "status": "succeeded", "result": {"rows": 1}}
            batch = await client.post("/v1/jobs/finish", json={"attempts": [item]})
            assert [said["verdict"] for said in batch.json()["attempts"]] == ["finalizer_missing"]
            assert await job.status() == "claimed"  # nothing has changed
            await queue_app.enqueue("plain")
            assert (await (await claim_one(client)).finish(result=1)).status_code == 200
        # The same report, to a server that has it.
        async with client_of(runner._transport.app, token) as client:  # type: ignore[attr-defined]  # the app behind it
            path, headers = f"/v1/jobs/{attempt.job}/status", attempt.headers
            body = {"status": "succeeded", "result": {"rows": 1}}
            assert (await client.put(path, json=body, headers=headers)).status_code == 200
    assert await kept(await connect()) == [(job.id, 1, 0)]
