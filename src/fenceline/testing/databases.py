"""Databases for tests: clones of a migrated template, each made in milliseconds.

The server is `$FENCELINE_TEST_DSN`, whose role must be allowed to create databases. Otherwise it is an embedded
PostgreSQL that all workers of pytest-xdist share and that is removed after the run.
"""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from fenceline.database.embedded import EmbeddedPostgres
from fenceline.database.migrate import migrate
from fenceline.testing.clock import movable_clock_sql
from fenceline.testing.loop_thread import LoopThread

#: Nothing here outlives the run, and every test creates and drops a database.
QUICK_SETTINGS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off")
#: How much memory a run of many tests may take.
MEMORY_BYTES = 6 * 2**30


class Databases:
    """Creates and drops the databases for the tests of one process."""

    def __init__(self, *, folder: Path) -> None:
        """`folder`: where the embedded server lives, if it is needed."""
        self._given = os.environ.get("FENCELINE_TEST_DSN")
        self._folder = folder
        self._embedded: EmbeddedPostgres | None = None
        self._loop = LoopThread()
        self._administrator: asyncpg.Connection | None = None
        self._server: str = ""
        self._template: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def create(self) -> str:
        """Create a migrated database whose clock can be moved. Returns its DSN."""
        return self._loop.run(self._create())

    def drop(self, dsn: str) -> None:
        """Drop a database, even if something is connected to it."""
        self._loop.run(self._drop(_name_in(dsn)))

    def close(self) -> None:
        """Drop the template and leave the server. The last process to leave the embedded one stops it."""
        self._loop.run(self._close())
        self._loop.close()
        if self._embedded is not None:
            self._embedded.stop()

    async def _create(self) -> str:
        administrator = await self._connect()
        template = self._template or await self._make_template(administrator)
        self._template = template
        name = f"fenceline_test_{uuid4().hex[:12]}"
        # With the default strategy, from PostgreSQL 15 on WAL_LOG: it took less than half the time of FILE_COPY.
        await administrator.execute(f'create database "{name}" template "{template}"')
        return dsn_of(self._server, name)

    async def _make_template(self, administrator: asyncpg.Connection) -> str:
        """A migrated database that refuses connections: it must be idle to be cloned."""
        name = f"fenceline_template_{uuid4().hex[:12]}"
        await administrator.execute(f'create database "{name}" template template0')
        await migrate_database(dsn_of(self._server, name), movable_clock_sql())
        await administrator.execute(f'alter database "{name}" with allow_connections false')
        return name

    async def _connect(self) -> asyncpg.Connection:
        if self._administrator is not None:
            return self._administrator
        self._server = await asyncio.to_thread(self._find_server)
        self._administrator = administrator = await asyncpg.connect(self._server)
        if self._given is None:
            for setting in QUICK_SETTINGS:
                await administrator.execute(f"alter system set {setting}")
            await administrator.execute("select pg_reload_conf()")
        return administrator

    def _find_server(self) -> str:
        if self._given is not None:
            return self._given
        self._embedded = EmbeddedPostgres(self._folder)
        return self._embedded.start()

    async def _drop(self, name: str) -> None:
        await (await self._connect()).execute(f'drop database if exists "{name}" with (force)')

    async def _close(self) -> None:
        if self._template is not None:
            await self._drop(self._template)
        if self._administrator is not None:
            await self._administrator.close()


async def migrate_database(dsn: str, more: str | None = None) -> None:
    """Install the schema, then run `more`, which is SQL."""
    connection = await asyncpg.connect(dsn)
    try:
        await migrate(connection)
        if more is not None:
            await connection.execute(more)
    finally:
        await connection.close()


def dsn_of(server: str, database: str) -> str:
    return urlunsplit(urlsplit(server)._replace(path=f"/{database}"))


def _name_in(dsn: str) -> str:
    return urlsplit(dsn).path.removeprefix("/")


def short_and_quick() -> Path:
    """A folder for the embedded server of tests. The path of its socket must be short, and in memory it takes half the
    time to create and drop databases.
    """
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it has a name of its own
    has_room = memory.is_dir() and shutil.disk_usage(memory).free > MEMORY_BYTES
    return memory if has_room else Path("/tmp")  # noqa: S108 - as above
