"""What the tests of worked systems share: each system is imported from its folder, and run as programs of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

#: Of the time that a test may take: for the message of a wait in vain, and to end what was started.
KEPT_SECONDS = 15.0

_gives_up_at = float("inf")

sys.path += [str(tests.parent) for tests in sorted(Path(__file__).parent.glob("*/tests"))]


@pytest.hookimpl(tryfirst=True)  # before fixtures, which wait for things too
def pytest_runtest_setup(item: pytest.Item) -> None:
    global _gives_up_at  # noqa: PLW0603 - one test at a time runs in a process
    marker = item.get_closest_marker("timeout")
    _gives_up_at = time.monotonic() + float(marker.args[0] if marker else item.config.getini("timeout")) - KEPT_SECONDS


class Programs:
    """Programs of one system, in its folder and on the test's database; none outlives the test."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self._folder = folder
        self._environment = {"FENCELINE_DSN": dsn}
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, module: str, *arguments: str) -> "subprocess.Popen[bytes]":
        """`python -m module …`; variables that the test has set are there too."""
        program = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=self._folder,
            env={**os.environ, **self._environment},
            start_new_session=True,
        )
        self._started.append(program)
        return program

    def signal(self, program: "subprocess.Popen[bytes]", number: int) -> None:
        """To a program and all that it has started, as when a machine goes down or stands still."""
        if program.poll() is None:
            parent = psutil.Process(program.pid)
            for process in (parent, *parent.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(number)

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for as long as the test may take: machines differ."""
        while not (seen := condition()):
            if self.seconds_left() == 0.0:
                raise AssertionError(f"waited in vain: {what}. Last seen: {seen}")
            time.sleep(0.05)

    def seconds_left(self) -> float:
        """What the test may still wait: for calls that take a timeout."""
        return max(0.0, _gives_up_at - time.monotonic())

    def stop(self) -> None:
        for program in self._started:
            self.signal(program, signal.SIGKILL)
            program.wait()


@pytest.fixture
def programs(request: pytest.FixtureRequest, fenceline_dsn: str) -> Iterator[Programs]:
    started = Programs(request.path.parents[1], fenceline_dsn)
    yield started
    started.stop()
