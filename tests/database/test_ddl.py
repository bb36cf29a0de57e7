import subprocess
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import asyncpg

from fenceline.database.ddl import ddl
from fenceline.database.embedded_cluster import find_binaries
from fenceline.database.migrate import MigrationReport, check_schema, migrate
from fenceline.database.schema_files import read_schema_files

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


async def test_the_script_installs_what_migrate_installs(
    empty_database: str, database: str, read_catalogue: Callable[[Connection], Awaitable[list[str]]]
) -> None:
    subprocess.run(  # noqa: ASYNC221 - nothing else runs on this loop
        [find_binaries() / "psql", "--no-psqlrc", "--quiet", empty_database],
        input=ddl(),
        text=True,
        check=True,
    )
    scripted: Connection = await asyncpg.connect(empty_database)
    migrated: Connection = await asyncpg.connect(database)
    try:
        assert await read_catalogue(scripted) == await read_catalogue(migrated)
        await check_schema(scripted)
        assert await migrate(scripted) == MigrationReport(number=read_schema_files().number)
    finally:
        await scripted.close()
        await migrated.close()
