"""A PostgreSQL server of a test's own, which it may stop, kill and restart."""

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import psycopg
from tests.support.patience import eventually_blocking

from fenceline.database.embedded import EmbeddedPostgres

Mode = Literal["fast", "immediate"]
SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class OwnServer:
    def __init__(self, folder: Path) -> None:
        self._embedded = EmbeddedPostgres(folder)
        self._pid_file = folder / "data" / "postmaster.pid"
        self.dsn = self._embedded.start()

    def stop(self, mode: Mode) -> None:
        """As `pg_ctl stop -m MODE`."""
        pid = int(self._pid_file.read_text().split()[0])
        os.kill(pid, SIGNALS[mode])
        eventually_blocking(lambda: not Path(f"/proc/{pid}").exists(), "the server stops")

    def start(self) -> None:
        assert self._embedded.start() == self.dsn

    def restart(self, mode: Mode) -> None:
        self.stop(mode)
        self.start()

    def execute(self, *statements: str) -> Any:
        """Each on its own; the first value of the last, if there is one."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchone() if cursor.description else None

    def close(self) -> None:
        self._embedded.stop()


@contextlib.contextmanager
def own_server() -> Iterator[OwnServer]:
    with tempfile.TemporaryDirectory(prefix="fenceline-own-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        server = OwnServer(Path(folder))
        try:
            yield server
        finally:
            server.close()
