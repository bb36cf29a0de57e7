"""The database goes away: what is repeated, what is not, and what the caller is told."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.client.conftest import Worker
from tests.client.proxy import Proxy, proxied
from tests.support.patience import eventually, seconds_left

from fenceline import ConnectionLost, DatabaseUnavailable, Fenceline, FencelineError
from fenceline.client.app_parts import app_parts
from fenceline.runtime import database as runtime_database


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_database, "PAUSES", (0.01, 0.02, 0.04))


@pytest.fixture
async def proxy(database: str) -> AsyncIterator[Proxy]:
    async with proxied(database) as proxy:
        yield proxy


@pytest.fixture
async def app(proxy: Proxy) -> AsyncIterator[Fenceline]:
    """On one connection that has been used, so that the next statement is one request and one reply."""
    async with Fenceline(proxy.dsn, pool_size=1) as app:
        await app.enqueue("work")
        await app.system.depth()
        assert proxy.connections == 1
        yield app


async def terminate_backends(worker: Worker) -> None:
    await worker.connection.fetch(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
        "where datname = current_database() and application_name = 'fenceline'"
    )


async def test_a_read_whose_reply_is_lost_is_repeated(app: Fenceline, proxy: Proxy) -> None:
    proxy.lose_reply = True

    assert await app.system.depth() == 1
    assert proxy.connections == 2


@pytest.mark.parametrize("trap, jobs", [("lose_reply", 2), ("lose_request", 1)])
async def test_an_enqueue_whose_connection_breaks_is_not_repeated(
    app: Fenceline, proxy: Proxy, worker: Worker, trap: str, jobs: int
) -> None:
    setattr(proxy, trap, True)

    with pytest.raises(ConnectionLost, match=r"may or may not have been carried out.*idempotency_key") as lost:
        await app.enqueue("work")

    assert isinstance(lost.value, FencelineError)
    assert lost.value.__cause__ is not None
    assert await worker.count_jobs() == jobs
    assert (await app.enqueue("work")).created


@pytest.mark.parametrize("trap", ["lose_reply", "lose_request"])
async def test_an_enqueue_with_an_idempotency_key_is_repeated_and_makes_one_job(
    app: Fenceline, proxy: Proxy, worker: Worker, trap: str
) -> None:
    await app.enqueue("work", idempotency_key="warm")
    setattr(proxy, trap, True)
    job = await app.enqueue("work", {"n": 1}, idempotency_key="k")

    assert await worker.count_jobs() == 3
    assert (await job.get()).args == {"n": 1}
    assert proxy.connections == 2


async def test_many_with_an_idempotency_key_are_repeated_as_one(app: Fenceline, proxy: Proxy, worker: Worker) -> None:
    @app.job()
    async def ingest(path: str) -> None: ...

    await ingest.options(idempotency_key="warm").enqueue_many([{"path": "x"}])
    proxy.lose_reply = True
    jobs = await ingest.options(idempotency_key="k").enqueue_many([{"path": "a"}, {"path": "b"}])

    assert len(set(jobs)) == 2
    assert await worker.count_jobs() == 4


async def test_verbs_that_are_no_reads_are_not_repeated(app: Fenceline, proxy: Proxy) -> None:
    job = await app.enqueue("work")
    for verb in (job.cancel, job.retry, job.delete):
        await app.system.depth()
        proxy.lose_request = True
        with pytest.raises(ConnectionLost):
            await verb()


async def test_nothing_was_sent_so_anything_is_tried_again(app: Fenceline, proxy: Proxy) -> None:
    app_parts(app).database().pauses = (0.01,) * 10_000  # longer than it takes to open the proxy, on any machine
    await proxy.refuse()
    enqueue = asyncio.create_task(app.enqueue("work"))
    await asyncio.sleep(0.015)
    await proxy.open()

    assert (await enqueue).created


async def test_a_database_that_stays_away(app: Fenceline, proxy: Proxy) -> None:
    await proxy.refuse()

    with pytest.raises(DatabaseUnavailable, match=r"cannot be reached.*Tried 4 times"):
        await app.enqueue("work")
    with pytest.raises(DatabaseUnavailable, match="cannot be reached"):
        await app.system.depth()
    with pytest.raises(DatabaseUnavailable, match="cannot be reached"):
        await app.jobs.handle("0003-G923-0VQV-SW0").result(timeout=seconds_left())
    with pytest.raises(DatabaseUnavailable, match="cannot be reached"):
        app.sync.enqueue("work")


async def test_idle_connections_that_died_are_replaced_without_an_error(
    app: Fenceline, proxy: Proxy, worker: Worker
) -> None:
    await terminate_backends(worker)

    async def are_cut() -> bool:
        return proxy.lines == 0

    await eventually(are_cut, "the proxy has cut the lines")
    for _ in range(5):  # then the loop closes the sockets, and the client notices
        await asyncio.sleep(0)

    assert (await app.enqueue("work")).created


async def test_also_when_the_event_loop_had_no_time_to_notice(
    database: str, worker: Worker, administrator: Any
) -> None:
    """The connections die while the program's own code blocks the loop, and the next thing it does is to enqueue."""
    async with Fenceline(database, pool_size=1) as app:
        await app.enqueue("work")
        administrator.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where application_name = 'fenceline' and datname = %s",
            [database.partition("?")[0].rpartition("/")[2]],
        )
        time.sleep(0.05)  # noqa: ASYNC251 - that is the point
        await app.enqueue("work")
        await app.enqueue("work")

    assert await worker.count_jobs() == 3


async def test_a_call_that_is_cancelled_is_cancelled_in_the_database_too(
    app: Fenceline, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fenceline.runtime.pool.CLOSE_SECONDS", seconds_left())  # it is waited for, however long
    async with worker.connection.transaction():
        await worker.connection.execute("lock table fenceline.job in access exclusive mode")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(app.enqueue("work"), 0.1)

    assert (await app.enqueue("work")).created
    assert await worker.count_jobs() == 2


@pytest.mark.parametrize(
    "dsn",
    ["postgresql://localhost:notaport/x", "mysql://localhost/x", "nonsense"],
)
async def test_a_dsn_that_makes_no_sense_is_not_tried_again(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_database, "PAUSES", (3600.0,))

    with pytest.raises((DatabaseUnavailable, ValueError)):
        await asyncio.wait_for(Fenceline(dsn).enqueue("work"), seconds_left())


async def test_a_database_that_does_not_exist_is_named_at_once(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_database, "PAUSES", (3600.0,))
    name = database.partition("?")[0].rpartition("/")[2]

    with pytest.raises(DatabaseUnavailable, match="fenceline_nowhere"):
        await asyncio.wait_for(Fenceline(database.replace(name, "fenceline_nowhere")).enqueue("work"), seconds_left())


async def test_a_parameter_of_the_wrong_type_is_no_loss_of_the_connection(app: Fenceline, proxy: Proxy) -> None:
    job = await app.enqueue("work")

    with pytest.raises(FencelineError, match="'high'"):
        await job.reprioritise("high")  # type: ignore[arg-type]  # wrong on purpose
    assert (await app.enqueue("work")).created
    assert proxy.connections == 1


@pytest.mark.parametrize("state", ["40P01", "25006", "53100", "55P03", "58030"])
@pytest.mark.parametrize("times, undone", [(3, False), (99, True)])
async def test_what_the_database_undid_is_sent_again(
    app: Fenceline, worker: Worker, state: str, *, times: int, undone: bool
) -> None:
    await worker.connection.execute(
        f"""
        create sequence public.tries;
        create or replace function fenceline.record_event(
          p_actor text, p_action text, p_subject text, p_tenant text, p_reason text, p_before jsonb, p_after jsonb
        ) returns void language plpgsql as $$
        begin
          if nextval('public.tries') <= {times} then
            raise exception using errcode = '{state}';
          end if;
        end $$
        """
    )
    refused = pytest.raises(DatabaseUnavailable, match=r"refuses for now: .*Tried 4 times, nothing was changed")
    with refused if undone else contextlib.nullcontext():
        await app.system.drain()
    assert await worker.connection.fetchval("select draining from fenceline.setting") is not undone
    assert await worker.connection.fetchval("select last_value from public.tries") == 4
