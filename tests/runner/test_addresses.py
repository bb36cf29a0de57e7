"""Jobs that are meant for one runner, or for runners with labels: from every way of enqueueing to the handler."""

import asyncio
from typing import Any

import httpx
import pytest
from tests.runner.conftest import LiveServer, make_runner, running, unreachable
from tests.server.conftest import make_token
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import running as working

from fenceline import Context, Fenceline
from fenceline.errors import InvalidOption


def handlers(app: Fenceline) -> Fenceline:
    @app.job()
    async def where(ctx: Context) -> str:
        return f"{ctx.job.kind}"

    return app


async def worker_of(job: Any) -> str:
    await job.wait(seconds_left())
    return str((await job.get()).worker)


async def test_runners_get_what_is_meant_for_them(live: LiveServer, token: str) -> None:
    to_east = await live.app.enqueue("where", runner="east")
    to_gpu = await live.app.enqueue("where", runner={"gpu": "yes"})
    to_nobody = await live.app.enqueue("where", runner="away")
    labels = {"gpu": "yes", "zone": "w"}
    west = make_runner(handlers(unreachable()), live.url, token, name="west", labels=labels)
    working_west = asyncio.create_task(west.run())
    try:
        async with running(handlers(unreachable()), live.url, token, name="east"):
            assert await worker_of(to_east) == "east"
            assert await worker_of(to_gpu) == "west"
            free = [await live.app.enqueue("where") for _ in range(3)]
            assert {await worker_of(job) for job in free} <= {"east", "west"}
            record = await to_nobody.get()
            assert (record.status, record.runner) == ("queued", "away")
            west.stop()
            await asyncio.wait_for(working_west, seconds_left())
    finally:
        working_west.cancel()
        await asyncio.wait({working_west})
    assert (await to_gpu.get()).runner == {"gpu": "yes"}


async def test_a_worker_gets_addressed_jobs_only_by_its_own_name_and_labels(database: str) -> None:
    app = handlers(Fenceline(database))
    to_worker = await app.enqueue("where", runner="db-1")
    to_label = await app.enqueue("where", runner={"zone": "a"})
    to_other = await app.enqueue("where", runner={"zone": "b"})
    free = await app.enqueue("where", priority=-1)
    async with working(app, name="db-1", labels={"zone": "a"}):
        for job in (to_worker, to_label, free):
            assert await worker_of(job) == "db-1"
        assert await to_other.status() == "queued"


async def test_over_http_by_name_or_labels(live: LiveServer) -> None:
    producer, runner = await make_token(live.app, "producer"), await make_token(live.app, "runner")
    async with httpx.AsyncClient(base_url=live.url, timeout=seconds_left()) as client:

        async def ask(path: str, body: dict[str, Any], token: str) -> httpx.Response:
            return await client.post(path, json=body, headers={"Authorization": f"Bearer {token}"})

        made = [
            (await ask("/v1/jobs", {"kind": "where", "runner": address}, producer)).json()
            for address in ("east", {"zone": "a"}, None)
        ]
        assert [job["runner"] for job in made] == ["east", {"zone": "a"}, None]
        for wrong in (7, "", {"zone": 1}, ["east"], "x" * 201):
            refused = await ask("/v1/jobs", {"kind": "where", "runner": wrong}, producer)
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), wrong

        body = {"name": "east", "lanes": ["default"], "labels": {"zone": "b"}, "version": "1.4.2"}
        registered = (await ask("/v1/runners", body, runner)).json()
        assert registered["version"] == "1.4.2"
        claim = {"runner_id": registered["id"], "lanes": ["default"], "count": 10}
        claimed = (await ask("/v1/jobs/claim", claim, runner)).json()["attempts"]
        assert [attempt["job"]["id"] for attempt in claimed] == [made[0]["id"], made[2]["id"]]
        assert [attempt["job"]["runner"] for attempt in claimed] == ["east", None]
        # A claim that waits does not go round and round for the one that is left.
        assert (await ask("/v1/jobs/claim", {**claim, "wait": 0.5}, runner)).json()["attempts"] == []


async def test_what_is_no_address_is_refused(database: str) -> None:
    async with Fenceline(database) as app:
        for wrong in (7, "", {"zone": 1}):
            with pytest.raises(InvalidOption):
                await app.enqueue("where", runner=wrong)  # type: ignore[arg-type]  # on purpose
