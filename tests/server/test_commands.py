"""`fenceline server`, `token`, `enqueue` and `depth` as programs."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest
from tests.support.patience import KEPT_SECONDS, eventually_blocking, seconds_left

HELD_UP = """select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%own_runner%'"""
#: It gives up a lock after half a second, and says so in the log.
PATIENT_MAINTENANCE = "alter function fenceline.maintain(double precision) set lock_timeout = 0"
Run = Callable[..., "subprocess.CompletedProcess[str]"]
COMMAND = str(Path(sys.executable).parent / "fenceline")
APP = """
from fenceline import Fenceline

app = Fenceline()

@app.job()
async def ingest(path: str) -> None: ...
"""


@pytest.fixture
def run(database: str, tmp_path: Path) -> Run:
    def call(*arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [COMMAND, *arguments],
            cwd=tmp_path,
            env=os.environ | {"FENCELINE_DSN": database},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds_left(),
        )

    return call


def test_tokens_are_made_listed_and_revoked(run: Run, database: str) -> None:
    made = run(
        "token", "create", "--role", "producer", "--tenant", "acme", "--name", "ci", "--expires", "30d", "--json"
    )
    token = json.loads(made.stdout)
    assert re.fullmatch(r"fl_[\w-]{43}", token["token"])
    plain = run("token", "create", "--role", "viewer")
    assert re.fullmatch(r"fl_[\w-]{43}\n", plain.stdout)
    listed = json.loads(run("token", "list", "--json").stdout)["items"]
    assert [(row["name"], row["role"], row["tenant"]) for row in listed] == [
        ("viewer-2", "viewer", "default"), ("ci", "producer", "acme"),
    ]  # fmt: skip
    assert "ci" in run("token", "list").stdout
    assert run("token", "revoke", str(token["id"])).stdout == f"token {token['id']} (ci) is revoked\n"
    with psycopg.connect(database) as connection:
        days = connection.execute("select expires_at - created_at from fenceline.token where name = 'ci'").fetchone()
    assert days is not None
    assert round(days[0].total_seconds() / 86400) == 30
    for wrong, says in (
        (("token", "create", "--role", "boss"), "role 'boss' does not exist"),
        (("token", "create", "--role", "viewer", "--expires", "soon"), "'soon' is neither a span"),
        (("token", "revoke", "99"), "token 99 does not exist"),
    ):
        failed = run(*wrong)
        assert failed.returncode != 0
        assert says in failed.stderr
        assert "Traceback" not in failed.stderr


def test_enqueue_prints_the_id_and_depth_a_number(run: Run, database: str) -> None:
    assert run("depth").stdout == "0\n"
    made = run(
        "enqueue", "ingest", "--args", '{"path": "a"}', "--priority", "7", "--label", "project:x", "--lane", "system"
    )
    assert re.fullmatch(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{3}\n", made.stdout), made.stderr
    again = run(
        "enqueue", "report", "--args", "-", "--dedupe-key", "d", "--run-at", "2100-01-01T00:00:00Z", "--after",
        made.stdout.strip(), "--snapshot", "[1]", "--needs-approval", "--json", stdin='{"n": 1}',
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert run("enqueue", "report", "--dedupe-key", "d", "--json").stdout == again.stdout
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select kind, status, priority, args, labels, lane from fenceline.jobs order by job_id"
        )
        assert rows.fetchall() == [
            ("ingest", "queued", 7, {"path": "a"}, {"project": "x"}, "system"),
            ("report", "awaiting_approval", 0, {"n": 1}, None, "default"),
        ]
    assert run("depth").stdout == "1\n"
    assert run("depth", "--lane", "default").stdout == "0\n"
    assert json.loads(run("depth", "--json").stdout) == {"depth": 1}
    for wrong in (("--args", "[1]"), ("--args", "{"), ("--label", "x"), ("--run-at", "soon"), ("--lane", "nowhere")):
        failed = run("enqueue", "ingest", *wrong)
        assert failed.returncode != 0
        assert failed.stderr.startswith(("Usage", "Error"))


def test_the_server_starts_bootstraps_validates_and_stops(run: Run, database: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    command = [COMMAND, "server", "shop:app", "--port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=os.environ | {"FENCELINE_DSN": database}, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().endswith("is in .fenceline/first-token\n"), "output is a log"
            kept = tmp_path / ".fenceline" / "first-token"
            assert kept.stat().st_mode & 0o777 == 0o600
            token = kept.read_text().strip()
            url = process.stdout.readline().split()[-1]
            with httpx.Client(
                base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=seconds_left()
            ) as client:
                assert client.get("/readyz").status_code == 200
                assert client.post("/v1/jobs", json={"kind": "ingest", "args": {"path": "a"}}).status_code == 202
                assert client.post("/v1/jobs", json={"kind": "ingest", "args": {}}).status_code == 422
                # Maintenance runs here too: a timer becomes due without any worker.
                later = {"kind": "later", "run_at": "2100-01-01T00:00:00Z"}
                due = client.post("/v1/jobs", json=later).json()
                assert due["status"] == "scheduled"
                with psycopg.connect(database) as connection:
                    connection.execute("update fenceline.timer set run_at = now()")

                def status() -> str:
                    found: str = client.get(f"/v1/jobs/{due['id']}").json()["status"]
                    return found

                eventually_blocking(lambda: status() == "queued", "the timer is due", status)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(max(seconds_left(), KEPT_SECONDS / 2))
            finally:
                process.kill()  # harmless if it has ended
    assert process.returncode == 0
    run("token", "revoke", "1")
    for arguments, says in (
        (("server", "--port", "0"), "no token is valid"),
        (("server", "--host", "0.0.0.0", "--no-auth"), "loopback only"),  # noqa: S104 - refused
        (("server", "nothing:app"), "module 'nothing' is not found"),
        (("server", "--oidc-issuer", "x"), "given together"),
    ):
        failed = run(*arguments)
        assert failed.returncode != 0
        assert says in failed.stderr


def test_runners_that_wait_do_not_hold_up_the_end(database: str, tmp_path: Path) -> None:
    """They are answered, and nothing is cut off: that would be a traceback in the log of every deployment."""
    patient = ("--lock-seconds", "600", "--statement-seconds", "600")
    with psycopg.connect(database) as connection:
        connection.execute(PATIENT_MAINTENANCE)
    with subprocess.Popen(
        [COMMAND, "server", "--no-auth", "--port", "0", *patient],
        cwd=tmp_path,
        env=os.environ | {"FENCELINE_DSN": database},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            url = process.stdout.readline().split()[-1]
            with httpx.Client(base_url=url, timeout=seconds_left()) as client, ThreadPoolExecutor() as pool:
                runner = client.post("/v1/runners", json={"name": "edge", "lanes": ["default"]}).json()["id"]
                claim = pool.submit(client.post, "/v1/jobs/claim", json={"runner_id": runner, "wait": 60})
                with (
                    psycopg.connect(database, autocommit=True) as connection,
                    psycopg.connect(database, autocommit=True) as looking,  # a transaction sees activity as it was
                ):
                    eventually_blocking(
                        lambda: looking.execute("select from fenceline.waiter").rowcount, "the claim waits"
                    )
                    # The other one leaves no trace, unless it is held up on its way.
                    with connection.transaction():
                        connection.execute("lock table fenceline.worker in access exclusive mode")
                        body = {"lanes": ["default"], "seconds": 60}
                        wait = pool.submit(client.post, f"/v1/runners/{runner}/wait", json=body)
                        eventually_blocking(lambda: looking.execute(HELD_UP).rowcount, "the wait has come")
                process.send_signal(signal.SIGTERM)
                assert wait.result().json() == {"lanes": []}
                assert claim.result().json() == {"attempts": [], "suspects": False}
            assert process.wait(seconds_left()) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()  # harmless if it has ended
