"""Two schedulers that are killed all the time, 24 zones, every change of their clocks: each tick fires exactly once.

The schedulers are processes. They are killed from outside with SIGKILL, and their sessions end by themselves between
any two statements of `fire_schedule`. The database's clock is moved through the hours around each change; what must
have happened is worked out apart, minute by minute.
"""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias
from zoneinfo import ZoneInfo

import asyncpg
import pytest
from tests.conftest import Connect
from tests.model.wall_clock import ZONES, Pattern, changes, expected_ticks, fixed, recurring
from tests.sql.clock import clock_sql
from tests.support.patience import give_up, seconds_left

from fenceline.database.schema_files import read_schema_files

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

YEAR = 2026
BEFORE, AFTER = timedelta(hours=5), timedelta(hours=7)
PATTERNS = [
    fixed(0, 30),
    fixed(2, 30),
    fixed(3, 0),
    recurring("0 * * * *", range(1)),
    recurring("*/30 * * * *", range(0, 60, 30)),
]
#: Where sessions may end: after each of these lines.
BETWEEN = [
    "  for v_tick in\n",  # after the row has been taken and compared
    "    if not found or v_tick.outcome <> 'fire' then\n",  # after the tick's row
    "      v_fired := v_fired + v_created::integer;\n",  # after the job
    "    exception when others then\n",  # after the tick's outcome
    "  update fenceline.schedule s\n",  # before the next tick is set
    "  return v_fired;\n",  # when all is done but the commit
]
DEATH = """
create sequence public.deaths;
create function public.may_die() returns void language plpgsql as $$
begin
  if random() < 0.006 then
    perform nextval('public.deaths');  -- sequences do not roll back
    perform pg_terminate_backend(pg_backend_pid());
  end if;
end $$;
"""


def deadly_fire_schedule() -> str:
    """The function as it is, with a chance to die between its statements."""
    [text] = [file.text for file in read_schema_files().code if file.name == "fire_schedule"]
    for line in BETWEEN:
        assert text.count(line) == 1, line
        text = text.replace(line, f"perform public.may_die();\n{line}")
    return DEATH + text


class Schedulers:
    """Two processes; a killed one is replaced at once."""

    def __init__(self, dsn: str, log: Path) -> None:
        self._command = [sys.executable, str(Path(__file__).with_name("scheduler_process.py")), dsn]
        self._log = log
        self._running = [self._start(), self._start()]
        self.killed = 0

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as output:
            return subprocess.Popen(self._command, stdout=output, stderr=output)

    def kill_one(self, chance: random.Random) -> None:
        place = chance.randrange(2)
        self._end(self._running[place])
        self._running[place] = self._start()
        self.killed += 1

    def close(self) -> None:
        for process in self._running:
            self._end(process)

    @staticmethod
    def _end(process: "subprocess.Popen[bytes]") -> None:
        process.kill()
        process.wait()


@contextmanager
def two_schedulers(dsn: str, log: Path) -> Iterator[Schedulers]:
    schedulers = Schedulers(dsn, log)
    try:
        yield schedulers
    finally:
        schedulers.close()


def episodes() -> list[tuple[datetime, datetime, list[str]]]:
    """Spans of time with the zones whose clocks change in them, in order; the zone that has none is in all of them."""
    found: list[tuple[datetime, datetime, list[str]]] = []
    dates = sorted((change, name) for name in ZONES for change in changes(ZoneInfo(name), YEAR))
    for change, name in dates:
        if found and change - BEFORE < found[-1][1]:
            start, _, names = found.pop()
            found.append((start, change + AFTER, [*names, name]))
        else:
            found.append((change - BEFORE, change + AFTER, ["Asia/Kolkata", name]))
    return found


async def settled(connection: Connection) -> None:
    """Until there is nothing to do for a scheduler."""
    due = "select count(*) from fenceline.schedule where due_at <= fenceline.clock()"
    left = None
    while left := await connection.fetchval(due):
        if seconds_left() == 0.0:
            give_up("nothing is due any more", f"{left} schedules are due")
        await asyncio.sleep(0.005)  # it happens hundreds of times


@pytest.mark.timeout(1800)  # hundreds of moments, one after the other
async def test_each_tick_fires_exactly_once(database: str, connect: Connect, tmp_path: Path) -> None:
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    operator = await connect()
    await operator.execute(clock_sql())
    await operator.execute(deadly_fire_schedule())
    expected: dict[str, list[datetime]] = {}
    spans = episodes()
    assert sum(len(names) - 1 for _, _, names in spans) == 2 * (len(ZONES) - 1)
    with two_schedulers(database, tmp_path / "schedulers.log") as schedulers:
        for number, (start, end, names) in enumerate(spans):
            await move_clock(operator, start)
            await declare(operator, number, names)
            expected |= {
                schedule_name(number, name, pattern): expected_ticks(pattern, ZoneInfo(name), start, end)
                for name in names
                for pattern in PATTERNS
            }
            now = start
            while now < end:
                await settled(operator)
                now = min(now + timedelta(minutes=chance.randint(5, 90)), end)
                await move_clock(operator, now)
                if chance.random() < 0.2:
                    schedulers.kill_one(chance)
            await settled(operator)
            await operator.execute("select fenceline.delete_schedule(name) from fenceline.schedule")

    rows = await operator.fetch(
        "select schedule, tick_at, outcome, job_id from fenceline.schedule_tick order by tick_at"
    )
    log = (tmp_path / "schedulers.log").read_text()
    assert {row["outcome"] for row in rows} == {"fired"}, f"seed {seed}\n{log}"
    fired: dict[str, list[datetime]] = {name: [] for name in expected}
    for row in rows:
        fired[row["schedule"]].append(row["tick_at"])
    assert fired == expected, f"seed {seed}\n{log}"
    # And each has one job, which knows its tick.
    jobs = await operator.fetch("select created_by, run_at, id from fenceline.job")
    assert sorted((job["created_by"], job["run_at"], job["id"]) for job in jobs) == sorted(
        (f"schedule:{row['schedule']}", row["tick_at"], row["job_id"]) for row in rows
    )
    deaths = await operator.fetchval("select last_value from public.deaths")
    assert schedulers.killed >= 10
    assert deaths >= 10
    assert len(rows) > 1500


def schedule_name(number: int, zone: str, pattern: Pattern) -> str:
    return f"{number}.{zone.lower().replace('/', '.')}.{PATTERNS.index(pattern)}"


async def declare(operator: Connection, number: int, names: list[str]) -> None:
    declared = {
        schedule_name(number, name, pattern): {
            "kind": "work", "cron": pattern.cron, "timezone": name, "misfire": "all", "misfire_limit": 1000,
        }
        for name in names
        for pattern in PATTERNS
    }  # fmt: skip
    await operator.execute("select fenceline.declare_schedules($1)", json.dumps(declared))


async def move_clock(operator: Connection, moment: datetime) -> None:
    await operator.execute("update public.test_clock set now = $1", moment.astimezone(UTC))
