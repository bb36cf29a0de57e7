"""Schedules from Python: declared in code, changed by operators, fired by a scheduler."""

import contextlib
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

import asyncpg
import pytest
from tests.conftest import Connect
from tests.sql.clock import START, clock_sql

from fenceline import Fenceline, InvalidArgs, InvalidSchedule, Retry, UnknownSchedule
from fenceline.client.app_parts import app_parts
from fenceline.client.schedule_decorator import declare_schedules
from fenceline.database.call import Call
from fenceline.errors import ConnectionLost, DatabaseBusy, DatabaseUnavailable, FencelineError, InvalidOption
from fenceline.runtime.scheduler import Scheduler

NOON = datetime.fromisoformat(START)


class Time:
    """The database's clock, and a scheduler that looks when it is moved."""

    def __init__(self, app: Fenceline, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection
        self._scheduler = Scheduler(app_parts(app).database().call)

    async def passes(self, **duration: float) -> int:
        """So much time; returns how many jobs were made."""
        await self._connection.execute("update public.test_clock set now = now + $1", timedelta(**duration))
        return (await self._scheduler.run_once()).fired


@pytest.fixture
async def time(app: Fenceline, connect: Connect) -> Time:
    connection = await connect()
    await connection.execute(clock_sql())
    return Time(app, connection)


async def test_a_declared_schedule_fires(app: Fenceline, time: Time) -> None:
    @app.schedule("0 3 * * *", timezone="Europe/Berlin", args={"path": PurePosixPath("/data")}, labels={"by": "clock"})
    @app.job(kind="report.daily", retry=Retry(max_attempts=5))
    async def report(path: PurePosixPath) -> str:
        return str(path)

    await declare_schedules(app_parts(app))
    schedule = await app.schedules.get("report.daily")
    assert (schedule.kind, schedule.cron, schedule.args) == ("report.daily", "0 3 * * *", {"path": "/data"})
    assert [run.isoformat() for run in schedule.next_runs(2)] == [
        "2030-01-02T03:00:00+01:00",
        "2030-01-03T03:00:00+01:00",
    ]
    assert await app.schedules.next_runs("report.daily", 1) == schedule.next_runs(1)
    assert await time.passes(hours=13) == 0
    assert await time.passes(hours=1) == 1
    [job] = (await app.jobs.list()).items
    assert (job.kind, job.args, job.labels) == ("report.daily", {"path": "/data"}, {"by": "clock"})
    assert (job.priority, job.created_by, job.run_at) == (0, "schedule:report.daily", NOON + timedelta(hours=14))
    [tick] = await app.schedules.ticks("report.daily")
    assert (tick.outcome, tick.tick_at, tick.job) == ("fired", NOON + timedelta(hours=14), job.id)
    # An hour of a tick that is late counts from the tick.
    assert await time.passes(days=1) == 1


async def test_schedules_by_kind_and_several_of_one(app: Fenceline, time: Time) -> None:
    app.schedule(kind="elsewhere", every=60, name="often")
    app.schedule("30 12 * * *", kind="elsewhere", name="once-a-day", max_attempts=1)
    await declare_schedules(app_parts(app))
    assert [schedule.name for schedule in await app.schedules.list()] == ["often", "once-a-day"]
    await time.passes(seconds=0)
    assert [await time.passes(minutes=1) for _ in range(3)] == [1, 1, 1]


async def test_what_operators_say_survives_the_next_start(app: Fenceline, time: Time, database: str) -> None:
    def declare(app: Fenceline) -> None:
        app.schedule("0 * * * *", kind="work", name="s")

    declare(app)
    await declare_schedules(app_parts(app))
    await app.schedules.pause("s", actor="ann")
    await app.schedules.set("s", cron="30 * * * *", windows=[{"from": "13:00", "to": "14:00"}], actor="ann")
    async with Fenceline(database) as second:
        declare(second)
        await declare_schedules(app_parts(second))
    schedule = await app.schedules.get("s")
    assert (schedule.paused, schedule.cron, schedule.source, schedule.changed_by) == (True, "30 * * * *", "code", "ann")
    assert schedule.next_runs() == []
    assert await time.passes(minutes=45) == 0
    await app.schedules.resume("s")
    assert await time.passes(seconds=0) == 0
    assert await time.passes(minutes=45) == 0  # 13:30 is in the window
    assert await time.passes(minutes=60) == 1
    outcomes = [(tick.tick_at.hour, tick.outcome) for tick in await app.schedules.ticks("s")]
    assert outcomes == [(14, "fired"), (13, "window")]
    assert (await app.schedules.set("s", cron=None, windows=None)).cron == "0 * * * *"


@pytest.mark.parametrize("misfire, jobs", [("skip", 0), ("once", 1), ("all", 4)])
async def test_ticks_that_nobody_was_there_for(app: Fenceline, time: Time, misfire: Any, jobs: int) -> None:
    await app.schedules.create("s", kind="work", every=3600, misfire=misfire, misfire_limit=4)
    await time.passes(seconds=0)
    assert await time.passes(hours=24, minutes=30) == jobs
    ticks = await app.schedules.ticks("s")
    assert len(ticks) == 24
    assert [tick.outcome for tick in ticks] == ["fired"] * jobs + ["missed"] * (24 - jobs)
    assert await time.passes(minutes=30) == 1


async def test_run_now_and_delete(app: Fenceline) -> None:
    await app.schedules.create("s", kind="work", every=3600, args={"n": 1}, options={"priority": 3}, paused=True)
    record = await (await app.schedules.run("s", actor="ann")).get()
    assert (record.args, record.priority, record.max_attempts) == ({"n": 1}, 3, 2)
    await app.schedules.delete("s")
    assert await app.schedules.list() == []
    for verb in (app.schedules.get, app.schedules.pause, app.schedules.run, app.schedules.delete):
        with pytest.raises(UnknownSchedule, match="schedule 's' does not exist"):
            await verb("s")


def test_the_same_from_blocking_code(database: str) -> None:
    app = Fenceline(database)
    schedules = app.sync.schedules
    try:
        schedules.set("s", kind="work", cron="0 3 * * *")
        assert schedules.pause("s").paused
        assert not schedules.resume("s").paused
        assert schedules.run("s").created
        assert len(schedules.next_runs("s")) == 5
        assert [schedule.name for schedule in schedules.list()] == ["s"]
        schedules.delete("s")
    finally:
        app.sync.close()


async def test_one_bad_schedule_does_not_stop_the_others(
    app: Fenceline, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    await app.schedules.create("a", kind="work", cron="0 0 * * *")
    await app.schedules.create("b", kind="work", every=60)
    # SQL knows the form of a cron expression only; a machine may also lack a zone.
    await time._connection.execute("""select fenceline.set_schedule('a', '{"cron": "0 99 * * *"}')""")
    await time.passes(seconds=0)
    assert await time.passes(seconds=60) == 1
    schedule = await app.schedules.get("a")
    assert schedule.error == "ValueError: cron '0 99 * * *' is not valid: Bad hour"
    assert "schedule a cannot be fired" in caplog.text
    await app.schedules.set("a", cron="* * * * *")
    await time.passes(seconds=0)
    assert (await app.schedules.get("a")).error is None


@pytest.mark.parametrize("error", [DatabaseUnavailable, ConnectionLost, DatabaseBusy])
async def test_a_database_that_is_away_is_no_fault_of_the_schedule(
    app: Fenceline, time: Time, error: type[FencelineError]
) -> None:
    """It stays due, and fires when the database is back: not a minute later, and with nothing to explain."""
    await app.schedules.create("a", kind="work", every=60)
    await time.passes(seconds=0)
    call = app_parts(app).database().call

    async def away(asked: Call[Any]) -> Any:
        if "fire_schedule" in asked.sql:
            raise error("for a moment")
        return await call(asked)

    await time._connection.execute("update public.test_clock set now = now + interval '60 seconds'")
    with contextlib.suppress(DatabaseUnavailable, ConnectionLost):
        assert (await Scheduler(away).run_once()).fired == 0
    assert (await app.schedules.get("a")).error is None
    assert await time.passes(seconds=1) == 1


async def test_more_schedules_than_one_look_reads(app: Fenceline, time: Time) -> None:
    for number in range(230):
        app.schedule(every=60, kind="work", name=f"s{number}")
    await declare_schedules(app_parts(app))
    await time.passes(seconds=0)
    assert await time.passes(seconds=60) == 230


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"cron": "0 25 * * *"}, "cron '0 25 * * *' is not valid: Bad hour"),
        ({"cron": "often"}, "cron 'often' is not valid"),
        ({"cron": "0 3 * * *", "every": 60}, "either cron or every, not both: cron '0 3 * * *', every 60"),
        ({"every": 0}, "every 0 is out of range"),
        ({"every": 0.5}, "every 0.5 is not a whole number"),
        ({"cron": "0 3 * * *", "timezone": "Mars/Olympus"}, "timezone 'Mars/Olympus' is unknown"),
        ({"every": 60, "misfire": "twice"}, "misfire 'twice' is unknown: use skip, once, all"),
        ({"every": 60, "windows": [{"from": "25:00", "to": "26:00"}]}, "from '25:00' of window"),
        ({"every": 60, "windows": [{"from": "22:00"}]}, "window {'from': '22:00'} is not valid"),
    ],
)
async def test_what_is_wrong_is_said_where_it_is_written(app: Fenceline, settings: Any, says: str) -> None:
    with pytest.raises(InvalidSchedule) as declared:
        app.schedule(kind="work", **settings)
    with pytest.raises(InvalidSchedule) as decorated:

        @app.schedule(**settings)
        @app.job()
        async def work() -> None: ...

    with pytest.raises(InvalidSchedule) as set_:
        await app.schedules.set("s", kind="work", **settings)
    for error in (declared, decorated, set_):
        assert says in str(error.value)
    assert await app.schedules.list() == []


async def test_what_else_is_wrong(app: Fenceline) -> None:
    with pytest.raises(InvalidSchedule, match="needs either a cron expression or every="):
        app.schedule(kind="work")
    with pytest.raises(InvalidSchedule, match="cron <Handler forgotten> is not valid"):

        @app.schedule  # type: ignore[arg-type]  # wrong on purpose
        @app.job()
        async def forgotten() -> None: ...

    app.schedule(kind="work", every=60)
    with pytest.raises(InvalidSchedule, match="schedule 'work' is declared twice: give one of them another name="):
        app.schedule(kind="work", every=120)
    with pytest.raises(TypeError, match=r"@app.schedule\(...\) stands above @app.job"):

        @app.schedule(every=60)  # type: ignore[type-var]  # wrong on purpose
        def wrong_order() -> None: ...

    with pytest.raises(InvalidOption, match="unknown option colour"):
        app.schedule(kind="other", every=60, colour="red")  # type: ignore[call-arg]  # wrong on purpose
    with pytest.raises(InvalidSchedule, match="cannot be used with a schedule"):
        app.schedule(kind="other", every=60, connection=object())
    with pytest.raises(InvalidSchedule, match="timezone 'Nowhere' is unknown"):
        await app.schedules.set("work", timezone="Nowhere")
    with pytest.raises(InvalidSchedule, match="'new' is new and needs a kind"):
        await app.schedules.set("new", every=60)


async def test_args_that_do_not_fit_the_handler_are_found_at_the_start(app: Fenceline) -> None:
    @app.schedule(every=60, args={"n": "many"})
    @app.job()
    async def count(n: int) -> None: ...

    with pytest.raises(InvalidArgs, match="args of kind 'count' do not fit its handler"):
        await declare_schedules(app_parts(app))
    assert await app.schedules.list() == []


async def test_the_next_tick_is_told(app: Fenceline, time: Time) -> None:
    await app.schedules.create("s", kind="work", every=60)
    await app.schedules.create("t", kind="work", every=7)
    first = await Scheduler(app_parts(app).database().call).run_once()
    epoch = int(NOON.astimezone(UTC).timestamp())
    assert (first.fired, first.next_seconds) == (0, 7 - epoch % 7)
    assert (await Scheduler(app_parts(app).database().call).run_once()).next_seconds is None
