"""Commands with a delivery that cannot work say so in one line; with one that can, and Redis away, they wait for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.delivery.redis_server import RedisServer
from tests.support.patience import eventually_blocking, seconds_left

APP = """
from fenceline import Fenceline

app = Fenceline()


@app.job
async def work() -> None: ...
"""


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "sample.py").write_text(APP)
    return subprocess.run(
        [sys.executable, "-m", "fenceline", *arguments], cwd=folder, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=seconds_left(), check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command, environment, says",
    [
        ("worker sample:app", {"FENCELINE_DELIVERY": "pigeon"}, "delivery 'pigeon' is unknown"),
        ("worker sample:app --once", {"FENCELINE_DELIVERY": "arq", "FENCELINE_REDIS_URL": ""}, "set FENCELINE_REDIS"),
        ("server sample:app --no-auth", {"FENCELINE_REDIS_URL": "localhost"}, "not the address of a Redis server"),
    ],
)
def test_a_wrong_delivery_ends_the_command_with_one_line(
    command: str, environment: dict[str, str], says: str, database: str, tmp_path: Path
) -> None:
    done = run(tmp_path, *command.split(), FENCELINE_DSN=database, **environment)
    assert done.returncode != 0
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert says in lines[0]


def test_enqueue_succeeds_with_redis_away_and_the_worker_runs_it_when_it_is_back(
    database: str, redis: RedisServer, tmp_path: Path
) -> None:
    environment = {"FENCELINE_DSN": database, "FENCELINE_DELIVERY": "arq", "FENCELINE_REDIS_URL": redis.url}
    redis.kill()
    assert run(tmp_path, "lanes", "set", "default", "--delivery", "arq", **environment).returncode == 0
    made = run(tmp_path, "enqueue", "work", **environment)
    assert (made.returncode, "cannot be reached" in made.stderr) == (0, True), made.stderr
    nothing = run(tmp_path, "worker", "sample:app", "--once", **environment)
    assert nothing.returncode == 2, nothing.stderr
    assert "cannot be reached" in nothing.stderr
    redis.start()

    def run_once() -> "subprocess.CompletedProcess[str] | None":
        """Its message was lost: it comes again within seconds."""
        done = run(tmp_path, "worker", "sample:app", "--once", **environment)
        return None if done.returncode == 2 else done

    done = eventually_blocking(run_once, "the message comes again")
    assert done.returncode == 0, done.stderr
    shown = run(tmp_path, "jobs", "show", made.stdout.strip(), "--json", **environment)
    assert '"succeeded"' in shown.stdout


def test_a_worker_without_redis_names_the_lanes_that_it_gets_nothing_of(database: str, tmp_path: Path) -> None:
    environment = {"FENCELINE_DSN": database}
    for lane in ("mail", "side"):
        made = run(tmp_path, "lanes", "set", lane, "--create", "--delivery", "arq", **environment)
        assert made.returncode == 0, made.stderr
    said = run(tmp_path, "worker", "sample:app", "--once", "--lanes", "default,mail", **environment).stderr
    assert "lane 'mail' is delivered by arq, and this worker gets none of its jobs: set FENCELINE_REDIS_URL" in said
    assert "'side'" not in said
