"""The start page, from an empty folder: the wheel in an empty environment, three files, a job, the dashboard."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.acceptance.session import free_port, shell_blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start" / "first_job.md"
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source archive, which is built first: so both can be."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: what is built is built from one")
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", str(folder)], cwd=ROOT, check=True)
    assert len(list(folder.glob("fenceline-*.tar.gz"))) == 1
    [built] = folder.glob("fenceline-*.whl")
    return built


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not pytest's tmp_path: the embedded server runs as another user, who must be able to reach the folder."""
    with tempfile.TemporaryDirectory(prefix="fenceline-start-", dir="/tmp") as made:
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
            (Path(made) / block.split()[1]).write_text(block)
        yield Path(made)


class Reader:
    """Somebody who types what the page says, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("FENCELINE_", "PYTHON", "VIRTUAL"))}
        self._environment = {**kept, "PIP_NO_COMPILE": "1"}  # each module is compiled when it is used, if it is

    def types(self, lines: str) -> str:
        done = subprocess.run(
            ["bash", "-c", f"set -e\n[ ! -d .venv ] || . .venv/bin/activate\n{lines}"],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def leaves_running(self, line: str) -> Iterator[None]:
        started = subprocess.Popen(
            ["bash", "-c", f". .venv/bin/activate\nexec {line}"], cwd=self._folder, env=self._environment
        )
        try:
            yield
        finally:
            started.send_signal(signal.SIGINT)  # Ctrl-C
            started.wait(PATIENCE_SECONDS)


def answer(url: str) -> str:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answered:  # noqa: S310 - our own server
                return str(answered.read().decode())
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@pytest.mark.timeout(600)  # installs some 30 packages
def test_from_an_empty_folder_to_a_job_on_the_dashboard(wheel: Path, folder: Path) -> None:
    install, worker, producer, listing, server = shell_blocks("start/first_job.md")
    assert sorted(path.name for path in folder.iterdir()) == ["producer.py", "shop.py", "worker.py"]
    reader, port = Reader(folder), free_port()
    reader.types(install.replace('"fenceline[', f'"{wheel}[').replace("python3", sys.executable))
    with reader.leaves_running(worker.strip()):
        said = reader.types(producer)
        assert re.fullmatch(r"enqueued \S+\ndone: \{'rows': 100\}\n", said)
        job = said.split()[1]
        assert job in reader.types(listing)
        with reader.leaves_running(f"{server.strip()} --port {port}"):
            assert "<html" in answer(f"http://127.0.0.1:{port}/")
            [found] = json.loads(answer(f"http://127.0.0.1:{port}/v1/jobs"))["items"]
    assert (found["id"], found["status"]) == (job, "succeeded")
