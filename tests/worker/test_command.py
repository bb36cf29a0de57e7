"""`fenceline worker` as a command: what it says, what it returns, and what it leaves in the database."""

import os
import re
import signal
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.support.patience import seconds_left
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
    (job,) = await fleet.enqueue("nap", {"seconds": 3600})
    worker = fleet.start("--once")
    await until(lambda: fleet.scalar("select started_at from fenceline.running"), "it runs")
    await fleet.scalar("select fenceline.cancel_job($1, p_force => true)", job)
    assert await worker.exit_code() == 1


async def test_once_hears_of_a_cancel_at_once(fleet: Fleet) -> None:
    (job,) = await fleet.enqueue("nap", {"seconds": 3600})
    worker = fleet.start("--once", "--lease", "7200")  # so that no heartbeat brings it
    await until(lambda: fleet.scalar("select started_at from fenceline.running"), "it runs")
    await fleet.scalar("select fenceline.cancel_job($1)", job)
    await worker.exit_code()
    assert await fleet.scalar("select outcome from fenceline.history") == "cancelled"


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
        "select fenceline.enqueue('nap', '{}', json_build_object('run_at', clock_timestamp() + interval '2 seconds'))"
    )
    assert await fleet.scalar("select count(*) from fenceline.timer") == 1
    await fleet.scalar("select pg_sleep(2.05)")
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
    """The app was imported before, is broken when a child is replaced, as in a deployment, and is repaired again."""
    broken = fleet.folder / "broken"
    (fleet.folder / "flaky_app.py").write_text(
        "import pathlib\n"
        "from sample_app import app\n"
        f"if pathlib.Path({str(broken)!r}).exists():\n"
        "    raise RuntimeError('not yet')\n"
    )
    worker = fleet.start(app="flaky_app:app")
    await fleet.enqueue("nap")
    await fleet.ended(1)
    broken.touch()
    for child in worker.children():
        os.kill(child, signal.SIGKILL)

    async def tried_twice() -> bool:
        return worker.output().count("a child could not be started: flaky_app cannot be imported") >= 2

    await until(tried_twice, "children are restarted")
    broken.unlink()
    await fleet.enqueue("nap")
    await fleet.ended(2)
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
    assert os.getpid() not in worker.children()


ONLY_IN_A_CHILD = """
import sys
import time
from pathlib import Path

from fenceline import Fenceline

app = Fenceline()

@app.job
async def nap() -> None: ...

if "fenceline.cli" not in sys.modules:
    try:
        Path("first").mkdir()
    except FileExistsError:
        time.sleep(3600)  # the other is still busy when the worker ends
    raise RuntimeError("only in a child")
"""


@pytest.mark.parametrize("options", [(), ("--once",), ("--processes", "2")], ids=str)
def test_an_app_that_a_child_cannot_import_ends_the_worker_in_one_line(
    database: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "halfway.py").write_text(ONLY_IN_A_CHILD)
    done = subprocess.run(
        [sys.executable, "-m", "fenceline", "worker", "halfway:app", *options],
        cwd=tmp_path,
        env={**os.environ, "FENCELINE_DSN": database},
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )
    assert done.returncode == 1
    assert re.fullmatch(r"Error: halfway cannot be imported: RuntimeError: only in a child \(.*\)\n", done.stderr)


async def test_a_child_that_dies_of_its_imports_is_reported(fleet: Fleet) -> None:
    (fleet.folder / "dying_app.py").write_text(
        "import os, sys\nfrom sample_app import app\nif 'fenceline.cli' not in sys.modules:\n    os._exit(7)\n"
    )
    worker = fleet.start(app="dying_app:app")

    async def reported() -> bool:
        return "a child ended with exit code 7 before it was ready for jobs" in worker.output()

    await until(reported, "the worker reports what became of its child")
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
