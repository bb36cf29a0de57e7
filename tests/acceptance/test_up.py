"""`fenceline up` in an empty folder: database, worker, sample jobs, and a tidy end."""

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

import httpx
import psycopg
from tests.support.patience import KEPT_SECONDS, seconds_left


def test_up_shows_finished_jobs_keeps_the_database_running_and_stops_on_sigterm() -> None:
    # Not pytest's tmp_path: the embedded server runs as another user, who must be able to reach the folder.
    with tempfile.TemporaryDirectory(prefix="fenceline-up-", dir="/tmp") as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
        command = [str(Path(sys.executable).parent / "fenceline"), "up"]
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                text = read_until("Press Ctrl-C", process)
                assert text.count("succeeded") == 7, text
                assert "awaiting_approval" in text
                found = re.search(r"psql '(.*)'", text)
                assert found is not None, text
                with psycopg.connect(found[1]) as connection:
                    rows = connection.execute("select status, count(*) from fenceline.jobs group by status").fetchall()
                assert dict(rows) == {"succeeded": 7, "awaiting_approval": 1}
                waiting = re.search(r"fenceline jobs approve '(\S+)'", text)
                assert waiting is not None, text
                door = re.search(r"(http://\S+)/login#(\S+)", text)
                assert door is not None, text
                with httpx.Client(base_url=door[1], timeout=seconds_left()) as browser:
                    assert browser.post("/v1/session", json={"code": door[2]}).json()["role"] == "platform_admin"
                    assert len(browser.get("/v1/jobs").json()["items"]) == 8
                    # The link is used up, and it is no token.
                    assert browser.post("/v1/session", json={"code": door[2]}).status_code == 401
                    assert browser.post("/v1/session", json={"token": door[2]}).status_code == 401
                shown = subprocess.run(
                    [command[0], "jobs", "list"],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=True,
                    timeout=seconds_left(),
                )
                assert shown.stdout.count("succeeded") == 7
                assert waiting[1] in shown.stdout
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    rest, _ = process.communicate(timeout=ends_within())
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise
        # It may have warned of something on the way.
        assert rest.endswith("Stopped.\n"), rest
        assert "Traceback" not in rest
        assert process.returncode == 0
        assert not (Path(folder) / ".fenceline" / "data" / "postmaster.pid").exists()


def ends_within() -> float:
    """Seconds for the program to stop; a test that gave up has its reserve for this."""
    return max(seconds_left(), KEPT_SECONDS / 2)


def take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, which a program obeys, may be around the tests


def test_a_closed_terminal_stops_the_embedded_database() -> None:
    with tempfile.TemporaryDirectory(prefix="fenceline-up-", dir="/tmp") as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [str(Path(sys.executable).parent / "fenceline"), "up"],
            cwd=folder,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=take_terminal,  # noqa: PLW1509 - two calls, then the program
        ) as process:
            os.close(theirs)
            try:
                shown = b""
                try:
                    while b"Press Ctrl-C" not in shown:
                        shown += os.read(ours, 4096)
                finally:
                    os.close(ours)  # it takes the terminal away, in any case
                assert process.wait(ends_within()) == 0
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert not (Path(folder) / ".fenceline" / "data" / "postmaster.pid").exists()


def read_until(mark: str, process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    shown = ""
    for line in process.stdout:
        shown += line
        if mark in line:
            break
    return shown
