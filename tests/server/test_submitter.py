"""Enqueues of many clients in few transactions: each gets its own answer, and no other's."""

import asyncio
from typing import Any, cast

import asyncpg
import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.test_jobs import is_problem
from tests.support.patience import seconds_left

from fenceline.database.calls.enqueue import Submission, Submitted
from fenceline.errors import ConnectionLost
from fenceline.runtime.database import Database
from fenceline.server.server_settings import ServerSettings
from fenceline.server.submitter import TURNS, Submitter
from fenceline.server.tenant_turns import Turns


@pytest.fixture
def settings() -> ServerSettings:
    """Who waits for a lock may do so as long as the test."""
    return ServerSettings(
        maintain=False, token_cache_seconds=0.0, refusals_per_second=0, lock_seconds=600, statement_seconds=600
    )


async def enqueue(client: httpx.AsyncClient, number: int, **options: Any) -> httpx.Response:
    return await client.post("/v1/jobs", json={"kind": f"k{number}", "args": {"n": number}, **options})


async def test_many_at_once_take_few_statements_and_each_gets_its_own_job(
    as_role: AsRole, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [await as_role("producer", tenant=f"t{number % 3}", name=f"p{number}") for number in range(6)]
    await asyncio.gather(*(client.get("/v1/jobs") for client in clients))
    statements: list[str] = []
    call = Database.call

    async def counted(self: Database, wanted: Any, connection: Any = None) -> Any:
        if "submit_job" in wanted.sql:
            statements.append(wanted.sql)
        return await call(self, wanted, connection)

    monkeypatch.setattr(Database, "call", counted)
    answers = await asyncio.gather(*(enqueue(clients[number % 6], number) for number in range(60)))
    for number, answer in enumerate(answers):
        assert answer.status_code == 202, answer.text
        job = answer.json()
        assert (job["kind"], job["args"], job["created_by"], job["tenant"]) == (
            f"k{number}", {"n": number}, f"p{number % 6}", f"t{number % 6 % 3}",
        )  # fmt: skip
    assert len({answer.json()["id"] for answer in answers}) == 60
    assert len(statements) <= 12


async def test_what_may_take_long_goes_by_itself(as_role: AsRole, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a tenant with two such enqueues at a time would hold up all others."""
    producer = await as_role("producer")
    first = (await enqueue(producer, 0)).json()["id"]
    together: list[str] = []
    submit = Submitter.submit

    async def noted(self: Submitter, asked: Submission) -> Submitted:
        together.append(asked.kind)
        return await submit(self, asked)

    monkeypatch.setattr(Submitter, "submit", noted)
    long: list[dict[str, Any]] = [
        {"after": [first] * 1000},
        {"snapshot": {"size": 1}},
        {"requires_hash": "h"},
        {"resource_lock": "r"},
        {"dedupe_key": "d"},
        {"args": {"text": "a" * 100_000}},
    ]
    for number, options in enumerate(long):
        made = await producer.post("/v1/jobs", json={"kind": f"k{number}", **options})
        assert made.status_code == 202
    assert together == []
    assert (await enqueue(producer, 9, priority=3, labels={"a": "b"}, key="k")).status_code == 202
    assert together == ["k9"]


async def test_one_that_is_refused_does_not_stop_the_others(as_role: AsRole) -> None:
    producer = await as_role("producer")
    answers = await asyncio.gather(
        *(enqueue(producer, number, **({"lane": "nowhere"} if number % 7 == 3 else {})) for number in range(30))
    )
    for number, answer in enumerate(answers):
        if number % 7 == 3:
            is_problem(answer, 422, "invalid")
        else:
            assert (answer.status_code, answer.json()["kind"]) == (202, f"k{number}")
    listed = (await producer.get("/v1/jobs", params={"limit": 100})).json()["items"]
    assert {job["kind"] for job in listed} == {f"k{number}" for number in range(30) if number % 7 != 3}
    assert len(listed) == 26  # a batch that was sent again has left nothing behind


async def test_one_that_waits_for_somebodys_transaction_holds_up_nobody(as_role: AsRole, connect: Connect) -> None:
    producer = await as_role("operator")
    rival: asyncpg.Connection[asyncpg.Record] = await connect()
    transaction = rival.transaction()
    await transaction.start()
    await rival.execute("""select fenceline.enqueue('a', '{}', '{"dedupe_key": "d"}')""")
    waiting = asyncio.create_task(enqueue(producer, 1, dedupe_key="d"))
    answers = await asyncio.gather(*(enqueue(producer, number) for number in range(10)))
    assert {answer.status_code for answer in answers} == {202}
    assert not waiting.done()
    await transaction.commit()
    assert (await waiting).status_code == 200


async def test_a_client_that_goes_away_takes_nobody_along(as_role: AsRole) -> None:
    producer = await as_role("producer")
    tasks = [asyncio.create_task(enqueue(producer, number)) for number in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    for answer in answers[1::2]:
        assert isinstance(answer, httpx.Response)
        assert answer.status_code == 202
    assert (await enqueue(producer, 99)).status_code == 202


async def test_a_lost_connection_is_told_to_everybody_and_the_next_batch_goes(
    as_role: AsRole, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = await as_role("producer")
    await producer.get("/v1/jobs")
    call = Database.call

    async def lost(self: Database, wanted: Any, connection: Any = None) -> Any:
        if "submit_job" in wanted.sql:
            raise ConnectionLost("the connection broke while a statement was under way")
        return await call(self, wanted, connection)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "call", lost)
        for answer in await asyncio.gather(*(enqueue(producer, number) for number in range(10))):
            is_problem(answer, 503, "unavailable")
    assert (await enqueue(producer, 1)).status_code == 202


async def test_one_that_comes_the_moment_the_last_turns_end_is_sent() -> None:
    asked: list[asyncio.Future[Submitted]] = []

    class SlowDatabase:
        async def call(self, _wanted: Any) -> Submitted:
            asked.append(asyncio.get_running_loop().create_future())
            return await asked[-1]

    submitter = Submitter(Turns(cast("Database", SlowDatabase()), each=10, seconds=60))
    one = Submission(kind="k", args="{}", options="{}", actor="me", tenant="default", defaults=None)

    async def sent(count: int) -> None:
        while len(asked) < count:  # noqa: ASYNC110 - turns of the loop are what it is about
            await asyncio.sleep(0)

    tasks = []
    for turn in range(TURNS):
        tasks.append(asyncio.create_task(submitter.submit(one)))
        await sent(turn + 1)
    for answer in asked:
        answer.set_result(Submitted("job", True, "{}"))
    # Its first step is taken right behind the last ones of the turns.
    tasks.append(asyncio.create_task(submitter.submit(one)))
    async with asyncio.timeout(seconds_left()):
        await sent(TURNS + 1)
    asked[-1].set_result(Submitted("job", True, "{}"))
    assert len(await asyncio.gather(*tasks)) == TURNS + 1
