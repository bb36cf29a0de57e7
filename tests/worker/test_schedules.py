"""Schedules in real worker processes: declared by their code, fired by their supervisors."""

import signal
from datetime import timedelta
from pathlib import Path

from tests.sql.clock import clock_sql
from tests.worker.fleet import Fleet, until
from tests.worker.in_process_worker import running
from tests.worker.test_footprint import NOTE_STATEMENTS

from fenceline import Fenceline

EVERY_SECOND = """
from fenceline import Fenceline

app = Fenceline()


@app.schedule(every=1, misfire="all", misfire_limit=1000)
@app.job()
async def tick() -> None: ...
"""


def write_app(fleet: Fleet) -> str:
    (Path(fleet.folder) / "ticking_app.py").write_text(EVERY_SECOND)
    return "ticking_app:app"


async def test_every_tick_of_a_fleet_runs_once(fleet: Fleet) -> None:
    """Two workers; the one that fires is killed, children and all, and another takes its place."""
    app = write_app(fleet)
    first = await fleet.started(app=app)
    await fleet.started(app=app)
    await fleet.ended(2)
    first.kill()
    await fleet.started(app=app)
    await fleet.ended(6)
    for worker in fleet.workers[1:]:
        worker.signal(signal.SIGTERM)
    for worker in fleet.workers[1:]:
        assert await worker.exit_code() == 0
    rows = await fleet.connection.fetch("select tick_at, outcome, decided_at from fenceline.schedule_tick order by 1")
    assert {row["outcome"] for row in rows} == {"fired"}
    moments = [row["tick_at"] for row in rows]
    assert moments == [moments[0] + timedelta(seconds=n) for n in range(len(rows))]
    jobs = await fleet.connection.fetch("select run_at, max_attempts from fenceline.job order by run_at")
    assert [job["run_at"] for job in jobs] == moments
    assert {job["max_attempts"] for job in jobs} == {2}


async def test_a_worker_that_comes_once_fires_what_is_due(fleet: Fleet) -> None:
    app = write_app(fleet)
    await fleet.connection.execute(clock_sql())
    assert await fleet.start("--once", app=app).exit_code() == 2  # declares the schedule: nothing is due yet
    await fleet.connection.execute("update public.test_clock set now = now + interval '1 second'")
    assert await fleet.start("--once", app=app).exit_code() == 0
    assert await fleet.start("--once", app=app).exit_code() == 2
    assert await fleet.scalar("select count(*) from fenceline.schedule_tick where outcome = 'fired'") == 1


async def test_a_wrong_schedule_ends_the_worker_with_one_clear_line(fleet: Fleet) -> None:
    (fleet.folder / "wrong_app.py").write_text(EVERY_SECOND.replace("every=1,", 'every=1, args={"n": 1},'))
    worker = fleet.start(app="wrong_app:app")
    assert await worker.exit_code() == 1
    assert "args of kind 'tick' do not fit its handler" in worker.output()
    assert worker.output().count("\n") == 1


async def test_an_embedded_worker_fires_too(fleet: Fleet, database: str) -> None:
    app = Fenceline(database)

    @app.schedule(every=1)
    @app.job()
    async def tick() -> None: ...

    async def fired() -> bool:
        return bool(await fleet.scalar("select count(*) >= 2 from fenceline.history where final"))

    async with running(app):
        await until(fired, "two ticks have run")


async def test_a_schedule_that_is_not_due_costs_no_statement(fleet: Fleet) -> None:
    """Whether one is due comes with the answer of the fleet's maintenance."""
    (fleet.folder / "idle_app.py").write_text(EVERY_SECOND.replace("every=1,", "every=86400,") + NOTE_STATEMENTS)
    await fleet.started(app="idle_app:app")

    def sent(what: str) -> int:
        return (fleet.folder / "statements").read_text().count(what)

    async def maintained() -> bool:
        return sent("fenceline.maintain") >= 4

    await until(maintained, "maintenance has run four times")
    assert sent("due_schedules") == sent("fire_schedule") == 1  # when it was new
