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
from tests.support.figures import Figures
from tests.support.patience import eventually_blocking, seconds_left

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start" / "first_job.md"
#: What the page says, with room for reading it.
FIVE_MINUTES = 300


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source archive, and the wheel that is built from it."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: what is built is built from one")
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.fixture
def wheel(built: Path) -> Path:
    [found] = built.glob("fenceline-*.whl")
    return found


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
            timeout=seconds_left(),
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def leaves_running(self, line: str) -> Iterator[None]:
        started = subprocess.Popen(
            ["bash", "-c", f". .venv/bin/activate\nexec {line}"],
            cwd=self._folder,
            env=self._environment,
            preexec_fn=_hear_ctrl_c,  # noqa: PLW1509 - the child makes one call and then runs the program
        )
        try:
            yield
            started.send_signal(signal.SIGINT)  # Ctrl-C
            started.wait(seconds_left())
        finally:
            started.kill()
            started.wait()


def _hear_ctrl_c() -> None:
    """Whoever started the tests may have left it ignored, as a shell with a job in the background does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def answer(url: str) -> str:
    def read() -> str:
        try:
            with urllib.request.urlopen(url, timeout=seconds_left()) as answered:  # noqa: S310 - our own server
                return str(answered.read().decode())
        except OSError:
            return ""

    return str(eventually_blocking(read, f"{url} answers"))


@pytest.mark.timeout(1800)  # installs some 30 packages
def test_from_an_empty_folder_to_a_job_on_the_dashboard(wheel: Path, folder: Path) -> None:
    follow_the_page(wheel, folder)


@pytest.mark.timing
@pytest.mark.timeout(1800)  # as above
def test_the_page_takes_five_minutes(wheel: Path, folder: Path, figures: Figures) -> None:
    figures.at_most("from an empty folder to the dashboard", follow_the_page(wheel, folder), FIVE_MINUTES)


def follow_the_page(wheel: Path, folder: Path) -> float:
    """The seconds that it took."""
    install, worker, producer, listing, server = shell_blocks("start/first_job.md")
    assert sorted(path.name for path in folder.iterdir()) == ["producer.py", "shop.py", "worker.py"]
    reader, port = Reader(folder), free_port()
    began = time.monotonic()
    reader.types(install.replace('"fenceline[', f'"{wheel}[').replace("python3", sys.executable))
    with reader.leaves_running(worker.strip()):
        said = reader.types(producer)
        assert re.fullmatch(r"enqueued \S+\ndone: \{'rows': 100\}\n", said)
        job = said.split()[1]
        assert job in reader.types(listing)
        with reader.leaves_running(f"{server.strip()} --port {port}"):
            assert "<html" in answer(f"http://127.0.0.1:{port}/")
            [found] = json.loads(answer(f"http://127.0.0.1:{port}/v1/jobs"))["items"]
            took = time.monotonic() - began
    assert (found["id"], found["status"]) == (job, "succeeded")
    return took


@pytest.mark.timeout(1800)  # as above
def test_the_source_archive_installs_into_an_empty_environment(built: Path, tmp_path: Path) -> None:
    [archive] = built.glob("fenceline-*.tar.gz")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "empty")], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(archive)], check=True)
    asked = [str(tmp_path / "empty" / "bin" / "fenceline"), "--version"]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert archive.name == f"fenceline-{version.split()[-1]}.tar.gz"
