"""Retention by row keeps up with whatever a fleet finishes, in small transactions."""

from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import asyncpg
import pytest

from fenceline.database.call import Call
from fenceline.runtime.maintenance import Maintenance

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

JOBS = 25_000
#: As if they had ended an hour ago, of a kind that is kept for a minute; one of them has said a lot.
FINISHED = f"""
insert into fenceline.kind (name, retention) values ('busy', '{{"succeeded": 60}}');
insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args)
select fenceline.id_at(now() - interval '1 hour') + i, 0, 3, 'busy', 'default', 'default', '{{}}'
from generate_series(1, {JOBS}) i;
insert into fenceline.history (job_id, ended_at, final, outcome)
select j.id, now() - interval '1 hour', true, 'succeeded' from fenceline.job j;
insert into fenceline.log (job_id, token, line, at, level, message)
select (select max(j.id) from fenceline.job j), 1, i, now(), 'info', 'hello' from generate_series(1, {JOBS}) i;
"""


class Recorder:
    """Runs calls one by one, each in a transaction of its own, and looks what it deleted."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.statements: list[str] = []
        self.most_deleted = 0

    async def call(self, call: Call[Any]) -> Any:
        before = await self._rows()
        self.statements.append(call.sql)
        result = call.decode(await self._connection.fetch(call.sql, *call.parameters))
        self.most_deleted = max(self.most_deleted, before - await self._rows())
        return result

    async def _rows(self) -> int:
        count = "select (select count(*) from fenceline.job) + (select count(*) from fenceline.log)"
        return int(await self._connection.fetchval(count))


@pytest.fixture
async def recorder(database: str) -> AsyncIterator[Recorder]:
    connection: Connection = await asyncpg.connect(database)
    yield Recorder(connection)
    await connection.close()


async def test_one_turn_goes_on_until_nothing_is_left(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fenceline.runtime.maintenance.UPKEEP_SECONDS", 3600.0)  # one, however long it takes
    await recorder._connection.execute(FINISHED)
    maintenance = Maintenance(recorder.call)
    for _ in range(100):
        await maintenance.run_once(0)
        if not await recorder._rows():
            break
    assert await recorder._rows() == 0
    assert sum("tidy_up" in statement for statement in recorder.statements) == 1
    # Claims and enqueues that meet one of these transactions do not wait long.
    assert recorder.most_deleted <= 10_000


async def test_upkeep_is_several_short_transactions(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes or drops a partition locks others out until its transaction ends: nothing slow may share it."""
    monkeypatch.setattr("fenceline.runtime.maintenance.RETENTION_SECONDS", 60.0)  # enough for all of it in one turn
    await Maintenance(recorder.call).run_once(0)

    def place(name: str) -> int:
        [found] = [number for number, sql in enumerate(recorder.statements) if f"fenceline.{name}(" in sql]
        return found

    order = [place(name) for name in ("maintain", "tidy_up", "create_partitions", "drop_days", "jobs_to_forget")]
    assert order == sorted(order)
    assert not any("fenceline.upkeep(" in sql for sql in recorder.statements)


async def test_an_error_ends_the_turn_and_the_next_begins_anew(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await recorder._connection.execute(FINISHED)
    monkeypatch.setattr("fenceline.runtime.maintenance.UPKEEP_SECONDS", 0.0)
    # Every turn looks at the days first, and must come to the jobs.
    monkeypatch.setattr("fenceline.runtime.maintenance.RETENTION_SECONDS", 60.0)
    failures = ["fenceline.forget_finished(", "fenceline.jobs_to_forget(", "fenceline.drop_days("]

    async def call(call: Call[Any]) -> Any:
        if failures and failures[-1] in call.sql:
            failures.pop()
            raise ConnectionResetError
        return await recorder.call(call)

    maintenance = Maintenance(call)
    for _ in range(200):
        try:
            await maintenance.run_once(0)
        except ConnectionResetError:
            continue
        if not await recorder._rows():
            break
    assert failures == []
    assert await recorder._rows() == 0
