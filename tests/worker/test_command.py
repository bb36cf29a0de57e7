"""`fenceline worker` as a command: what it says, what it returns, and what it leaves in the database."""

import os
import signal
import socket
from importlib.metadata import version

import pytest
from tests.worker.fleet import Fleet, until


async def test_once_runs_one_job(fleet: Fleet) -> None:
    await fleet.enqueue("nap", count=2)
    assert await fleet.start("--once").exit_code() == 0
    assert await fleet.scalar("select count(*) from fenceline.history where final") == 1
    assert await fleet.scalar("select count(*) from fenceline.ready") == 1
    assert await fleet.scalar("select count(*) from fenceline.worker where stopped_at is null") == 0


async def test_once_tells_that_the_job_failed(fleet: Fleet) -> None:
    await fleet.enqueue("fail")
    assert await fleet.start("--once").exit_code() == 1
    assert await fleet.scalar("select outcome from fenceline.history") == "failed"


async def test_once_tells_that_the_job_killed_its_process(fleet: Fleet) -> None:
    await fleet.enqueue("kill_the_process")
    for _ in range(2):
        assert await fleet.start("--once").exit_code() == 1
        # A suspect is run alone, which it is here.
        assert await fleet.scalar("select count(*) from fenceline.ready where deaths is not null") == 1
    assert await fleet.start("--once").exit_code() == 1
    assert await fleet.scalar("select error->>'code' from fenceline.history where final") == "quarantined"


async def test_once_tells_that_the_result_could_not_be_stored(fleet: Fleet) -> None:
    await fleet.scalar("update fenceline.setting set max_result_bytes = 1 returning 1")
    await fleet.enqueue("nap")
    assert await fleet.start("--once").exit_code() == 1
    assert await fleet.scalar("select error->>'code' from fenceline.history where final") == "too_large"


async def test_once_tells_that_the_job_was_taken_away(fleet: Fleet) -> None:
    (job,) = await fleet.enqueue("nap", {"seconds": 60})
    worker = fleet.start("--once")
    await until(lambda: fleet.scalar("select started_at from fenceline.running"), "it runs")
    await fleet.scalar("select fenceline.cancel_job($1, p_force => true)", job)
    assert await worker.exit_code() == 1


@pytest.mark.parametrize("options, code", [((), 2), (("--empty-exit", "0"), 0), (("--empty-exit", "7"), 7)])
async def test_once_tells_that_there_was_nothing_to_do(fleet: Fleet, options: tuple[str, ...], code: int) -> None:
    assert await fleet.start("--once", *options).exit_code() == code


async def test_a_lane_that_is_not_there_is_named(fleet: Fleet) -> None:
    worker = fleet.start("--once", "--lanes", "default,defualt")
    assert await worker.exit_code() == 2
    assert "lane 'defualt' does not exist: make it with `fenceline lanes set defualt --create`" in worker.output()
    assert "'default'" not in worker.output()


async def test_once_wakes_what_is_due(fleet: Fleet) -> None:
    """A fleet scaled to zero: nobody else has promoted it."""
    await fleet.scalar(
        "select fenceline.enqueue('nap', '{}', json_build_object('run_at', clock_timestamp() + interval '0.2 second'))"
    )
    assert await fleet.scalar("select count(*) from fenceline.timer") == 1
    await fleet.scalar("select pg_sleep(0.25)")
    assert await fleet.start("--once").exit_code() == 0


@pytest.mark.parametrize(
    "app, says",
    [
        ("nowhere:app", "nowhere"),
        ("sample_app:nothing", "sample_app:nothing is missing"),
        ("sample_app:note", "APP must name a Fenceline object"),
        ("empty_app:app", "has no handlers"),
    ],
)
async def test_an_app_that_is_not_there_is_one_clear_line(fleet: Fleet, app: str, says: str) -> None:
    (fleet.folder / "empty_app.py").write_text("from fenceline import Fenceline\napp = Fenceline()\n")
    worker = fleet.start(app=app)
    assert await worker.exit_code() not in (0, 2)
    assert worker.output().count("\n") == 1
    assert says in worker.output()


async def test_a_database_without_schema_is_one_clear_line(fleet: Fleet, empty_database: str) -> None:
    worker = fleet.start(dsn=empty_database)
    assert await worker.exit_code() == 1
    assert worker.output().count("\n") == 1
    assert "fenceline migrate" in worker.output()


async def test_a_worker_is_registered_with_what_it_is(fleet: Fleet) -> None:
    worker = await fleet.started("--lease", "12", "--processes", "2", children=2)
    rows = await fleet.connection.fetch("select * from fenceline.worker order by id")
    assert {row["pid"] for row in rows} == set(worker.children())
    for row in rows:
        assert row["host"] == socket.gethostname()
        assert row["name"] == f"{socket.gethostname()}:{row['pid']}"
        assert row["version"] == version("fenceline")
        assert row["lease_seconds"] == 12
        assert row["lanes"] is None
        assert {"nap", "fail", "kill_the_process"} <= set(row["kinds"])
        assert not row["runner"]
        assert row["stopped_at"] is None


async def test_a_child_that_cannot_start_is_tried_again(fleet: Fleet) -> None:
    """The app is broken in children only, and is repaired while they are restarted."""
    flag = fleet.folder / "repaired"
    (fleet.folder / "flaky_app.py").write_text(
        "import os, pathlib, sys\n"
        "from sample_app import app\n"
        f"if 'process' in sys.argv[0] and not pathlib.Path({str(flag)!r}).exists():\n"
        "    raise RuntimeError('not yet')\n"
    )
    worker = fleet.start(app="flaky_app:app")

    async def tried_twice() -> bool:
        return worker.output().count("not yet") >= 2

    await until(tried_twice, "children are restarted")
    flag.touch()
    await fleet.enqueue("nap")
    await fleet.ended(1)
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
    assert os.getpid() not in worker.children()
