"""The server goes away, comes back, or refuses for a while: workers live on, nothing is lost, nothing is run twice."""

import asyncio
import contextlib
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from tests.support.figures import Figures
from tests.worker.fleet import Fleet, until
from tests.worker.in_process_worker import running
from tests.worker.own_server import Mode, OwnServer, own_server

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.model.job import JobRecord
from fenceline.runtime.database import PAUSES

#: From the server's return until work flows again. The promise is two seconds; the machine may be slow.
SOON_SECONDS = 6.0

KILL_BACKENDS = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where datname = current_database() and application_name = 'fenceline'"
)


@pytest.fixture(scope="module")
def own() -> Iterator[OwnServer]:
    with own_server() as server:
        yield server


@pytest.fixture
async def app(own: OwnServer) -> AsyncIterator[Fenceline]:
    async with Fenceline(own.dsn) as app:
        await app.migrate()
        yield app


@contextlib.contextmanager
def read_only(own: OwnServer) -> Iterator[None]:
    own.execute("alter system set default_transaction_read_only = on", "select pg_reload_conf()")
    try:
        yield
    finally:
        own.execute(
            "begin read write", "commit", "alter system reset default_transaction_read_only", "select pg_reload_conf()"
        )


class Ledger:
    """What ran, by number, kept by the handlers themselves."""

    def __init__(self, app: Fenceline) -> None:
        self.ran: Counter[int] = Counter()
        self._app = app
        self._next = 0
        self._kind = f"work_{uuid4().hex[:8]}"

        @app.job(kind=self._kind)
        async def work(n: int, seconds: float = 0.05) -> None:
            await asyncio.sleep(seconds)
            self.ran[n] += 1

    async def enqueue(self, count: int, seconds: float = 0.05) -> range:
        numbers = range(self._next, self._next + count)
        self._next += count
        handler = app_parts(self._app).handlers[self._kind]
        await handler.options(idempotency_key=f"{self._kind} from {numbers.start}").enqueue_many(
            [{"n": n, "seconds": seconds} for n in numbers]
        )
        return numbers

    async def all_ran(self, numbers: range) -> None:
        async def done() -> bool:
            return all(self.ran[n] for n in numbers)

        await until(done, f"{len(numbers)} jobs ran", lambda: self.ran)

    async def accounted_for(self) -> None:
        """Every job ran once and ended once, also in the queue's own books."""

        async def all_ended() -> bool:
            return Counter(job.status for job in await self._jobs()) == {"succeeded": self._next}

        await until(all_ended, "all jobs have ended")
        assert self.ran == dict.fromkeys(range(self._next), 1)
        assert {job.attempt for job in await self._jobs()} == {1}

    async def _jobs(self) -> list[JobRecord]:
        jobs: list[JobRecord] = []
        cursor = None
        while True:
            page = await self._app.jobs.list(kind=[self._kind], limit=500, cursor=cursor)
            jobs += page.items
            cursor = page.next_cursor
            if cursor is None:
                return jobs


async def restart_under_a_worker(own: OwnServer, app: Fenceline, mode: Mode) -> list[float]:
    """How long it took, each time, until work flowed again."""
    ledger = Ledger(app)
    async with running(app, lease_seconds=600.0) as worker:
        await ledger.all_ran(await ledger.enqueue(20))
        waits = []
        for _round in range(3):
            under_way = await ledger.enqueue(60, 0.2)
            await asyncio.sleep(0.1)
            await asyncio.to_thread(own.stop, mode)
            await asyncio.sleep(0.3)
            await asyncio.to_thread(own.start)
            back = time.monotonic()
            await ledger.all_ran(await ledger.enqueue(1, 0.0))
            waits.append(time.monotonic() - back)
            await ledger.all_ran(under_way)
        assert not worker.done()
        await ledger.accounted_for()
    return waits


@pytest.mark.xdist_group("own server")
@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_the_server_restarts_under_an_embedded_worker(own: OwnServer, app: Fenceline, mode: Mode) -> None:
    await restart_under_a_worker(own, app, mode)


@pytest.mark.timing
@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_how_soon_work_flows_after_a_restart(
    own: OwnServer, app: Fenceline, mode: Mode, figures: Figures
) -> None:
    waits = await restart_under_a_worker(own, app, mode)
    figures.at_most("work flows after the server's return within", max(waits), SOON_SECONDS)


@pytest.mark.xdist_group("own server")
async def test_a_hundred_backends_are_killed_under_an_embedded_worker(own: OwnServer, app: Fenceline) -> None:
    ledger = Ledger(app)
    kills = 0
    async with running(app, lease_seconds=600.0) as worker:
        killer = await asyncpg.connect(own.dsn)
        try:
            while kills < 100:
                await ledger.enqueue(5, 0.02)
                kills += len(await killer.fetch(f"{KILL_BACKENDS} order by random() limit 2"))
                await asyncio.sleep(0.02)
        finally:
            await killer.close()
        assert not worker.done()
        await ledger.accounted_for()


@pytest.mark.xdist_group("own server")
async def test_a_server_that_is_read_only_for_two_seconds(own: OwnServer, app: Fenceline) -> None:
    ledger = Ledger(app)
    async with running(app, lease_seconds=600.0) as worker:
        await ledger.all_ran(await ledger.enqueue(5))
        under_way = await ledger.enqueue(40, 0.5)
        await asyncio.sleep(0.2)
        with read_only(own):
            enqueued = asyncio.create_task(ledger.enqueue(1, 0.0))
            await asyncio.sleep(2.0)
        await ledger.all_ran(await enqueued)
        await ledger.all_ran(under_way)
        assert not worker.done()
        await ledger.accounted_for()


@pytest.mark.xdist_group("own server")
async def test_a_worker_starts_while_the_server_restarts(own: OwnServer, app: Fenceline, tmp_path: Path) -> None:
    assert await app.system.depth() >= 0
    fleet = Fleet(own.dsn, tmp_path, await asyncpg.connect(own.dsn))
    fleet.connection.terminate()
    # A worker gives up after six seconds, and the server may take longer to come back.
    fleet.patch("from fenceline.worker import supervisor\nsupervisor.PAUSES = (0.5,) * 500")
    await asyncio.to_thread(own.stop, "fast")
    try:
        try:
            worker = fleet.start()
            await asyncio.sleep(1.5)
        finally:
            await asyncio.to_thread(own.start)
        fleet.connection = await asyncpg.connect(own.dsn)
        await fleet.registered(worker)
    finally:
        fleet.close()
        fleet.connection.terminate()


@pytest.mark.xdist_group("own server")
async def test_an_embedded_worker_starts_however_long_the_server_is_away(own: OwnServer, app: Fenceline) -> None:
    """Its schedules are the first thing that it tells the database, and nobody would start it again."""
    ledger = Ledger(app)
    every = f"hourly_{uuid4().hex[:8]}"

    @app.schedule("0 * * * *")
    @app.job(kind=every)
    async def hourly() -> None: ...

    app_parts(app).database().pauses = ()  # a call of the app's own gives up at once; it would after six seconds
    await asyncio.to_thread(own.stop, "fast")
    async with running(app) as worker:
        try:
            await asyncio.sleep(1.0)
            assert not worker.done()
        finally:
            await asyncio.to_thread(own.start)
        app_parts(app).database().pauses = PAUSES
        await ledger.all_ran(await ledger.enqueue(1, 0.0))
        assert every in {schedule.name for schedule in await app.schedules.list()}


REFUSE = """
create table public.refusing (state text);
create function public.refuse() returns trigger language plpgsql security definer as $$
declare
  v_state text := (select state from public.refusing);
begin
  if v_state is not null then
    raise exception using errcode = v_state, message = 'refused for a while';
  end if;
  return null;
end $$;
do $$
declare
  v_table name;
begin
  for v_table in select tablename from pg_tables where schemaname = 'fenceline' loop
    execute format('create trigger refuse before insert or update or delete on fenceline.%I '
                   'for each statement execute function public.refuse()', v_table);
  end loop;
end $$;
"""


@pytest.mark.parametrize("state", ["25006", "53100", "58030"])
async def test_a_refusal_that_passes_ends_nobody(fleet: Fleet, state: str) -> None:
    await fleet.connection.execute(REFUSE)
    worker = await fleet.started("--lease", "60", "--concurrency", "40")
    [child] = worker.children()
    await fleet.enqueue("nap", {"seconds": 1.0}, count=30)
    await fleet.enqueue("blocking_nap", {"seconds": 1.0}, count=10)
    await fleet.handlers(40)
    await fleet.connection.execute("insert into public.refusing values ($1)", state)
    await asyncio.sleep(2.0)
    await fleet.connection.execute("delete from public.refusing")
    await fleet.ended(40)
    assert worker.children() == [child]
    assert Counter(row["outcome"] for row in await fleet.history()) == {"succeeded": 40}
    assert Counter(line.word for line in fleet.ledger()) == {"start": 40, "end": 40}


async def test_too_many_connections_for_two_seconds(fleet: Fleet, administrator: Any) -> None:
    role = f"crowded_{os.getpid()}"
    administrator.execute(f"create role {role} login")
    try:
        await fleet.connection.execute(f"grant fenceline_worker, fenceline_producer to {role}")
        dsn = fleet.dsn.replace("postgresql://postgres@", f"postgresql://{role}@")
        assert dsn != fleet.dsn
        worker = await fleet.started("--lease", "60", "--concurrency", "20", dsn=dsn)
        [child] = worker.children()
        await fleet.enqueue("nap", {"seconds": 1.0}, count=20)
        await fleet.handlers(20)
        administrator.execute(f"alter role {role} connection limit 0")
        await fleet.connection.execute(KILL_BACKENDS)
        await asyncio.sleep(2.0)
        administrator.execute(f"alter role {role} connection limit -1")
        await fleet.ended(20)
        assert worker.children() == [child]
        assert Counter(line.word for line in fleet.ledger()) == {"start": 20, "end": 20}
    finally:
        fleet.close()
        await fleet.connection.execute(f"drop owned by {role}")
        administrator.execute(f"drop role {role}")


async def test_ten_rounds_of_killed_backends_kill_no_child(fleet: Fleet) -> None:
    worker = await fleet.started("--lease", "60")
    [child] = worker.children()
    gate = fleet.folder / "gate"
    await fleet.enqueue("until_released", {"gate": str(gate)}, count=4)
    await fleet.handlers(4)
    for _round in range(10):
        await fleet.connection.execute(KILL_BACKENDS)
        await asyncio.sleep(0.2)
    gate.touch()
    await fleet.ended(4)
    assert worker.children() == [child]
    assert Counter(line.word for line in fleet.ledger()) == {"start": 4, "end": 4}
    assert [row["outcome"] for row in await fleet.history()] == ["succeeded"] * 4


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_another_default_isolation_does_not_stop_a_worker(fleet: Fleet, level: str) -> None:
    name = fleet.dsn.partition("?")[0].rpartition("/")[2]
    await fleet.connection.execute(f"alter database \"{name}\" set default_transaction_isolation = '{level}'")
    await fleet.set_lane("interactive", slots=2)
    worker = await fleet.started("--lease", "60")
    [child] = worker.children()
    await fleet.enqueue("nap", {"seconds": 0.01}, count=10, lane="interactive")
    await fleet.enqueue("blocking_nap", {"seconds": 0.01}, count=10)
    await fleet.ended(20)
    assert worker.children() == [child]
    assert Counter(row["outcome"] for row in await fleet.history()) == {"succeeded": 20}
