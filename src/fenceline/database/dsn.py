"""Where the database is: a DSN, `$FENCELINE_DSN`, or the embedded PostgreSQL of this folder."""

import asyncio
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fenceline.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from fenceline.database.embedded import EmbeddedPostgres

_PASSWORD = re.compile(r"(?i)(?<=password=)[^&\s]*")
HIDDEN = "••••"


class Source:
    """Finds the DSN; starts the embedded database when there is none. Threads and event loops may share it."""

    def __init__(self, dsn: str | None = None, *, home: Path | None = None) -> None:
        self._dsn = dsn or os.environ.get("FENCELINE_DSN") or None
        self._home = home
        self._guard = threading.Lock()
        self._server: EmbeddedPostgres | None = None

    @property
    def given(self) -> str | None:
        """The DSN that was named; None: the database is the embedded one."""
        return self._dsn

    @property
    def is_embedded(self) -> bool:
        return self.given is None

    def describe(self) -> str:
        """For people: the DSN without its password, or the folder of the embedded database."""
        if (given := self.given) is not None:
            return f"database {without_password(given)}"
        from fenceline.database.embedded import default_folder  # noqa: PLC0415 - only where it is used

        return f"embedded database in {(self._home or default_folder()).resolve()}"

    async def dsn(self) -> str:
        if (given := self.given) is not None:
            check_dsn(given)
            return given
        return await asyncio.to_thread(self._start_embedded)

    def _start_embedded(self) -> str:
        from fenceline.database.embedded import EmbeddedPostgres  # noqa: PLC0415 - only where it is used

        with self._guard:
            if self._server is None:
                self._server = EmbeddedPostgres(self._home)
        # Every time: a server that died is restarted, and a forked child becomes a user of its own.
        return self._server.start()

    def close(self) -> None:
        """Leave the embedded database; the last user of the folder stops it."""
        if self._server is not None:
            self._server.stop()


def check_dsn(dsn: str) -> None:
    """Refuse what would confuse the driver, without repeating the DSN, which may have a password in it."""
    try:
        hosts = urlsplit(dsn).netloc.rpartition("@")[2]
    except ValueError as error:
        raise DatabaseUnavailable(f"the DSN cannot be read: {error}") from error
    for host in hosts.split(","):
        port = host.rpartition("]")[2].partition(":")[2]
        if port and not port.isdecimal():
            raise DatabaseUnavailable("the DSN cannot be read: its port is not a number")


def without_password(dsn: str) -> str:
    """A URL as people may see it; all of it is hidden if the secret part cannot be told apart."""
    scheme, separator, rest = dsn.partition("://")
    if not separator:
        return HIDDEN
    login, at, where = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}://{user}{colon and ':' + HIDDEN}{at}{_PASSWORD.sub(HIDDEN, where)}"
