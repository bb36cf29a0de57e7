"""Brings the schema `fenceline` of a database to the state that this program's files describe.

One transaction under one advisory lock, so any number of migrators may start at once: one does the work, the
others find it done.

1. Migrations that the database has not seen, in order, each recorded with its checksum. Forward only. `pre`
   in a name means: apply before the new program rolls out; `post`: fit to wait until the old program is gone.
2. Functions and views, when their files or grants changed (`replace_code`).
3. Roles and grants (`grants`).

A migration says from which number on a program can work with the schema it leaves (`compatible_from`). So an
older program goes on working on a newer schema until a migration says otherwise; it never puts its own older
functions over newer ones. For that to hold, a release that changes functions brings a migration, if need be
one without statements.
"""

import asyncio
import random
from dataclasses import dataclass

import asyncpg

from fenceline.database.grants import (
    administrator_sql,
    code_checksum,
    create_roles_sql,
    grants_sql,
)
from fenceline.database.lane_overrides import apply_lane_overrides
from fenceline.database.replace_code import Connection, replace_code
from fenceline.database.schema_files import ROLES, SchemaFiles, read_schema_files
from fenceline.database.schema_state import applied_migrations, check_schema, code_differs, pending, verify
from fenceline.errors import FencelineError, MigrationBlocked, SchemaForeign

__all__ = ["MigrationReport", "check_schema", "migrate", "pending"]

# "FENC" in ASCII, and the first lock of that name.
LOCK_SQL = "select pg_advisory_xact_lock(1178947139, 1)"

# search_path: files must qualify their names, and the catalogue must print qualified ones.
# check_function_bodies: functions may name each other whatever the order of their files.
SETTINGS_SQL = """
set local search_path = pg_catalog, pg_temp;
set local check_function_bodies = off;
set local client_min_messages = warning;
set local statement_timeout = 0;
"""

RECORD_MIGRATION_SQL = "insert into fenceline.migration (number, name, checksum, compatible_from) values ({})"
RECORD_CODE_SQL = """
insert into fenceline.code (checksum) values ({})
on conflict (one) do update set checksum = excluded.checksum, applied_at = clock_timestamp()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """What one run did. `str()` is what `fenceline migrate` prints."""

    number: int  # the highest migration now in the database
    applied: tuple[str, ...] = ()  # names of the migrations this run applied
    code_applied: bool = False  # whether it put functions and views in place
    dropped: tuple[str, ...] = ()  # functions and views that no file defines any more
    newer: bool = False  # the schema is newer than this program, and was left as it is
    administrator_sql: str | None = None  # roles this user may not create; everything else works without them

    def __str__(self) -> str:
        lines = [f"applied {name}" for name in self.applied]
        if self.code_applied:
            lines.append("functions and views are in place")
        lines += [f"dropped {name}" for name in self.dropped]
        if self.newer:
            lines.append(f"the schema (number {self.number}) is newer than this program and fits it: left as it is")
        elif not lines:
            lines.append(f"the schema is up to date (number {self.number})")
        if self.administrator_sql is not None:
            lines.append("database roles are missing that this user may not create; an administrator can run:")
            lines.append(self.administrator_sql)
        return "\n".join(lines)


async def migrate(
    connection: Connection,
    *,
    files: SchemaFiles | None = None,
    lock_timeout_seconds: float = 2.0,
    attempts: int = 10,
) -> MigrationReport:
    """Bring the schema up to date, all of it or nothing. Harmless to repeat, safe to run from many places at
    once.

    A migration that must wait for a lock gives up after `lock_timeout_seconds`, so that the queue behind it
    moves on, and the whole is tried again up to `attempts` times.

    Raises `MigrationChanged`, `SchemaTooNew`, `SchemaForeign`, `MigrationBlocked`; the database is then
    unchanged.

    >>> print(await migrate(connection))  # doctest: +SKIP
    applied 0001_pre_create_jobs
    functions and views are in place
    """
    if connection.is_in_transaction():
        raise FencelineError("migrate needs a connection that is not inside a transaction")
    wanted = files or read_schema_files()
    for attempt in range(1, attempts + 1):
        try:
            async with connection.transaction(isolation="read_committed"):
                return await _migrate(connection, wanted, lock_timeout_seconds)
        except (
            asyncpg.LockNotAvailableError,
            asyncpg.DeadlockDetectedError,
            asyncpg.InternalServerError,
        ) as error:
            # The catalogue's own "tuple concurrently updated" is no more than another lock we did not get.
            if isinstance(error, asyncpg.InternalServerError) and "concurrently" not in str(error):
                raise
            if attempt == attempts:
                raise MigrationBlocked(
                    f"other transactions held locks that the migration needs ({error}); nothing was changed, "
                    "run `fenceline migrate` again when they have ended"
                ) from error
            await asyncio.sleep(random.uniform(0.1, 0.3) * attempt)  # noqa: S311 - spreads retries, guards nothing
    raise ValueError("attempts must be 1 or more")


async def _migrate(connection: Connection, files: SchemaFiles, lock_timeout_seconds: float) -> MigrationReport:
    # Other migrators may take long: wait for them without limit, and for everybody else's locks only a
    # moment.
    await connection.execute(f"set local lock_timeout = 0; {LOCK_SQL}; {SETTINGS_SQL}")
    await connection.execute(f"set local lock_timeout = {round(lock_timeout_seconds * 1000)}")

    applied = await applied_migrations(connection)
    verify(files, applied)
    if len(applied) > files.number:
        return MigrationReport(number=len(applied), newer=True)

    user = await connection.fetchval("select current_user::text")
    await _become_owner(connection)
    if not applied:
        await _bootstrap(connection, files)
    names = await _apply_migrations(connection, files, after=len(applied))
    code_changed = await code_differs(connection, files)
    dropped: tuple[str, ...] = ()
    if code_changed:
        dropped = await replace_code(connection, files.code)
        if files.setup:
            await connection.execute(files.setup)
        await connection.execute(RECORD_CODE_SQL.format("$1"), code_checksum(files))

    await connection.execute("select set_config('role', $1, true)", user)
    await connection.execute(create_roles_sql(files))
    missing = await _missing_roles(connection, files)
    await _become_owner(connection)
    if names or code_changed or await _has_role_without_grants(connection, files):
        await connection.execute(grants_sql(files))
    if not applied:
        await apply_lane_overrides(connection)
    return MigrationReport(
        number=files.number,
        applied=names,
        code_applied=code_changed,
        dropped=dropped,
        administrator_sql=administrator_sql(files, missing) if missing else None,
    )


async def _bootstrap(connection: Connection, files: SchemaFiles) -> None:
    foreign = await connection.fetchval(
        """
        select count(*) from (
          select from pg_class where relnamespace = to_regnamespace('fenceline')
          union all select from pg_proc where pronamespace = to_regnamespace('fenceline')) as found
        """
    )
    if foreign:
        raise SchemaForeign(
            f"the schema fenceline exists and holds {foreign} objects that Fenceline did not make: "
            "rename or drop it, or use another database"
        )
    await connection.execute(files.bootstrap)


async def _become_owner(connection: Connection) -> None:
    """Whoever migrates, one role owns everything: functions run with their owner's rights, so it must not
    vary.
    """
    await connection.execute(
        "select set_config('role', pg_get_userbyid(nspowner)::text, true) from pg_namespace "
        "where nspname = 'fenceline' and pg_get_userbyid(nspowner) <> current_user"
    )


async def _apply_migrations(connection: Connection, files: SchemaFiles, *, after: int) -> tuple[str, ...]:
    for migration in files.migrations[after:]:
        try:
            await connection.execute(migration.text)
        except asyncpg.PostgresError as error:
            error.add_note(f"while applying {migration.name}")
            raise
        await connection.execute(
            RECORD_MIGRATION_SQL.format("$1, $2, $3, $4"),
            migration.number,
            migration.name,
            migration.checksum,
            migration.compatible_from,
        )
    return tuple(migration.name for migration in files.migrations[after:])


async def _missing_roles(connection: Connection, files: SchemaFiles) -> list[str]:
    found = await connection.fetch(
        "select rolname::text from pg_roles where rolname = any ($1::text[])", _role_names(files)
    )
    names = {row["rolname"] for row in found}
    return [role for role in ROLES if files.role_name(role) not in names]


async def _has_role_without_grants(connection: Connection, files: SchemaFiles) -> bool:
    """A role that came later, by an administrator's hand or with another database, has no USAGE yet."""
    found = await connection.fetchval(
        """
        select exists (select from pg_roles where rolname = any ($1::text[])
                       and not has_schema_privilege(oid, 'fenceline', 'usage'))
        """,
        _role_names(files),
    )
    return bool(found)


def _role_names(files: SchemaFiles) -> list[str]:
    return [files.role_name(role) for role in ROLES]
