"""`fenceline up` in an empty folder: database, worker, sample jobs, and a tidy end."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import psycopg


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
                door = re.search(r"Bearer (\S+)' (http://\S+)/v1/jobs", text)
                assert door is not None, text
                answer = httpx.get(f"{door[2]}/v1/jobs", headers={"Authorization": f"Bearer {door[1]}"})
                assert len(answer.json()["items"]) == 8
                shown = subprocess.run(
                    [command[0], "jobs", "list"],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                assert shown.stdout.count("succeeded") == 7
                assert waiting[1] in shown.stdout
            finally:
                process.send_signal(signal.SIGTERM)
                rest, _ = process.communicate(timeout=60)
        assert rest == "Stopped.\n"
        assert process.returncode == 0
        assert not (Path(folder) / ".fenceline" / "data" / "postmaster.pid").exists()


def read_until(mark: str, process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    shown = ""
    for line in process.stdout:
        shown += line
        if mark in line:
            break
    return shown
