"""docs/http.md: the session with curl, run by a shell as it is printed there, against a server of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "http.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def output() -> Iterator[str]:
    """What the shell prints for all blocks, one after the other, in an empty folder."""
    assert shutil.which("curl"), "the session is made with curl"
    blocks = BLOCK.findall(GUIDE.read_text("utf-8"))
    assert len(blocks) == 6
    # The port is printed for readers; here it must be free.
    port = str(42000 + os.getpid() % 20000)
    script = "set -e\ntrap 'kill %1; wait' EXIT\n" + "\necho\n".join(blocks).replace("8321", port)
    # Not pytest's tmp_path: the embedded server runs as another user, who must be able to reach the folder.
    with tempfile.TemporaryDirectory(prefix="fenceline-http-", dir="/tmp") as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        yield done.stdout


def test_the_printed_session_runs(output: str) -> None:
    assert re.search(r"shown this once: fl_\S{43}$", output, re.MULTILINE)
    assert "HTTP/1.1 202 Accepted" in output
    assert "\n202\n200\n" in output
    documents = list(read_documents(output))
    jobs = [document for document in documents if "kind" in document]
    assert [job["status"] for job in jobs] == ["awaiting_approval", "queued", "cancelled"]
    assert jobs[-1]["error"]["message"] == "wrong file"
    assert {job["created_by"] for job in jobs} == {"ann"}
    lists = [document["items"] for document in documents if "items" in document]
    assert [job["id"] for job in lists[0]] == [jobs[0]["id"]]
    events = [event["event"] for event in lists[1]]
    assert events[:2] == ["job.enqueue", "job.approve"]
    assert sorted(events[2:]) == ["job.cancel", "job.end"]  # of the same moment
    assert lists[2][0]["action"] == "lane.create"
    (bulk,) = [document for document in documents if "matched" in document]
    assert (bulk["matched"], bulk["changed"], bulk["dry_run"]) == (1, 1, True)
    (problem,) = [document for document in documents if "code" in document]
    assert (problem["code"], "holder" in problem) == ("resource_locked", True)


def read_documents(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object in the output; curl puts one behind the other."""
    decoder, place = json.JSONDecoder(), 0
    while (place := text.find("{", place)) >= 0:
        document, place = decoder.raw_decode(text, place)
        yield document
