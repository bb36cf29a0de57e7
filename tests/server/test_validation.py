"""A server that knows the application validates args when they come."""

import threading
from collections.abc import AsyncIterator

import pytest
from tests.server.conftest import AsRole
from tests.server.test_jobs import is_problem

from fenceline import Fenceline, NotFound, Retry


@pytest.fixture
async def queue_app(database: str) -> AsyncIterator[Fenceline]:
    async with Fenceline(database) as app:
        seen: list[str] = []

        def check(path: str, chunk: int = 1) -> None:
            seen.append(threading.current_thread().name)
            if path == "missing":
                raise NotFound("there is no file 'missing'")
            if path == "wrong":
                raise ValueError("'wrong' cannot be ingested")
            assert chunk > 0

        @app.job(lane="maintenance", retry=Retry(max_attempts=7), validate=check)
        async def ingest(path: str, chunk: int = 1) -> None: ...

        @app.job()
        async def plain(number: int, inner: dict[str, list[int]]) -> None: ...

        yield app
        assert all(name != threading.main_thread().name for name in seen)


async def test_args_are_validated_by_the_handler(as_role: AsRole) -> None:
    producer = await as_role("producer")
    made = await producer.post("/v1/jobs", json={"kind": "ingest", "args": {"path": "a"}})
    assert (made.status_code, made.json()["lane"], made.json()["max_attempts"]) == (202, "maintenance", 7)
    for args, field in (
        ({"number": "x", "inner": {}}, "args.number"),
        ({"inner": {}}, "args.number"),
        ({"number": 1, "inner": {"a": [1, "b"]}}, "args.inner.a.1"),
        ({"number": 1, "inner": {}, "more": 1}, "args.more"),
    ):
        response = await producer.post("/v1/jobs", json={"kind": "plain", "args": args})
        is_problem(response, 422, "invalid")
        assert [error["field"] for error in response.json()["errors"]] == [field]
    assert len((await producer.get("/v1/jobs")).json()["items"]) == 1


async def test_the_application_has_a_say(as_role: AsRole) -> None:
    producer = await as_role("producer")
    response = await producer.post("/v1/jobs", json={"kind": "ingest", "args": {"path": "missing"}})
    is_problem(response, 404, "not_found")
    assert response.json()["detail"] == "there is no file 'missing'"
    response = await producer.post("/v1/jobs", json={"kind": "ingest", "args": {"path": "wrong"}})
    is_problem(response, 422, "invalid")
    assert response.json()["errors"] == [{"field": "args", "message": "'wrong' cannot be ingested"}]
    assert (await producer.get("/v1/jobs")).json()["items"] == []


async def test_unknown_kinds_are_taken_as_they_come(as_role: AsRole) -> None:
    producer = await as_role("producer")
    assert (await producer.post("/v1/jobs", json={"kind": "unknown", "args": {"any": [1]}})).status_code == 202
