"""Schemas of releases past, from the plain SQL in `releases/`: what a running system has before it migrates."""

from pathlib import Path
from typing import TypeAlias

import asyncpg

from fenceline.database.grants import code_checksum, create_roles_sql, grants_sql
from fenceline.database.schema_files import SchemaFiles, read_schema_files

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

RELEASES = Path(__file__).parent / "releases"
MARK = "--- file: "
#: How many migrations each release had; they never change, so those of the tree are the same.
MIGRATIONS = {"0.1.0": 8}


def read_release(version: str, folder: Path) -> SchemaFiles:
    """The files of a release, unpacked into `folder`."""
    parts = (RELEASES / f"{version}.sql").read_text("utf-8").split(MARK)[1:]
    texts = {path: text for path, _, text in (part.partition("\n") for part in parts)}
    for migration in read_schema_files().migrations[: MIGRATIONS[version]]:
        texts[f"migrations/{migration.name}.sql"] = migration.text
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    return read_schema_files(folder)


async def install(connection: Connection, files: SchemaFiles) -> None:
    """As the release itself installed it: this program's migrator has no part in it."""
    async with connection.transaction():
        await connection.execute("set local search_path = pg_catalog, pg_temp; set local check_function_bodies = off")
        await connection.execute(files.bootstrap)
        for migration in files.migrations:
            await connection.execute(migration.text)
            await connection.execute(
                "insert into fenceline.migration (number, name, checksum, compatible_from) values ($1, $2, $3, $4)",
                migration.number,
                migration.name,
                migration.checksum,
                migration.compatible_from,
            )
        for file in files.code:
            await connection.execute(file.text)
        await connection.execute(files.setup)
        await connection.execute("insert into fenceline.code (checksum) values ($1)", code_checksum(files))
        await connection.execute(create_roles_sql(files))
        await connection.execute(grants_sql(files))
