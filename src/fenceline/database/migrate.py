"""Brings the schema `fenceline` of a database to the state that this program's files describe, while producers and
workers go on.

An empty database gets everything in one transaction. A schema that is in use gets it in small steps, each a
transaction of its own:

1. Migrations that the database has not seen, in order, each recorded with its checksum. Forward only. `pre`
   in a name means: apply before the new program rolls out; `post`: fit to wait until the old program is gone.
2. Roles.
3. Functions and views, when their files or grants changed (`replace_code`, `reshape`, `change_grants`).
4. What an earlier run has set aside is dropped, when nobody can need it any more (`retire`).

Each step first looks at what is left to do, under one advisory lock: any number of migrators may start at once, and one
that follows a killed one goes on where that stopped. A step waits for a table or view only for a moment, because
everybody who comes later waits behind it; then it is undone and tried again. That moment is far shorter than
`deadlock_timeout`, so a call that a step meets crosswise goes on before the server calls it a deadlock.

A migration says from which number on a program can work with the schema it leaves (`compatible_from`). So an
older program goes on working on a newer schema until a migration says otherwise; it never puts its own older
functions over newer ones. For that to hold, a release that changes functions brings a migration, if need be
one without statements.
"""

import asyncio
import dataclasses
import json
import random
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

import asyncpg

from fenceline.database.change_grants import change_grants, missing_roles
from fenceline.database.definitions import Connection
from fenceline.database.grants import (
    administrator_sql,
    code_checksum,
    create_roles_sql,
    file_checksums,
    grants_sql,
)
from fenceline.database.lane_overrides import apply_lane_overrides
from fenceline.database.replace_code import ReshapedError, create_code, replace_functions, replace_views
from fenceline.database.reshape import under_own_names, wait_for_calls
from fenceline.database.retire import drop, read_retired
from fenceline.database.schema_files import CodeFile, Migration, SchemaFiles, checksum_of, read_schema_files
from fenceline.database.schema_state import (
    MigrationReport,
    applied_migrations,
    check_schema,
    code_differs,
    pending,
    refuse_foreign,
    verify,
)
from fenceline.errors import FencelineError, MigrationBlocked

__all__ = ["MigrationReport", "check_schema", "migrate", "pending"]

T = TypeVar("T")

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
insert into fenceline.code (checksum, number, files) values ({})
on conflict (one) do update set checksum = excluded.checksum, number = excluded.number, files = excluded.files,
  applied_at = clock_timestamp()
"""
# The code of the release before, which this release goes on with.
SAME_CODE_SQL = "update fenceline.code set number = $1 where number < $1"

#: How long to keep what was set aside, for calls that are under way.
KEEP_SECONDS = 600.0


async def migrate(
    connection: Connection,
    *,
    files: SchemaFiles | None = None,
    lock_timeout_seconds: float = 0.1,
    attempts: int = 60,
    keep_seconds: float = KEEP_SECONDS,
) -> MigrationReport:
    """Bring the schema up to date. Harmless to repeat, safe to run from many places at once and under load, and to be
    killed: the next run goes on.

    A step that must wait for a lock gives up after `lock_timeout_seconds`, so that the queue behind it
    moves on, and is tried again up to `attempts` times, about a minute in all. What was set aside `keep_seconds` ago or
    longer is dropped.

    Raises `MigrationChanged`, `SchemaTooNew`, `SchemaForeign`, and `MigrationBlocked`: what was applied until then
    stays, and programs go on working with it.

    >>> print(await migrate(connection))  # doctest: +SKIP
    applied 0001_pre_create_jobs
    functions and views are in place
    """
    if connection.is_in_transaction():
        raise FencelineError("migrate needs a connection that is not inside a transaction")
    wanted = files or read_schema_files()
    return await _Run(connection, wanted, lock_timeout_seconds, attempts, keep_seconds).migrate()


class _Run:
    """One run. Methods that end in `_step` are called inside a transaction, under the lock, as the schema's owner."""

    def __init__(
        self,
        connection: Connection,
        files: SchemaFiles,
        lock_timeout_seconds: float,
        attempts: int,
        keep_seconds: float,
    ) -> None:
        self._connection = connection
        self._files = files
        self._lock_timeout_ms = round(lock_timeout_seconds * 1000)
        self._attempts = attempts
        self._keep_seconds = keep_seconds
        self._user = ""

    async def migrate(self) -> MigrationReport:
        self._user = await self._connection.fetchval("select current_user::text")
        report = await self._do(self._install_step)
        if report is not None:
            return report
        names = []
        while (name := await self._do(self._apply_next_step)) is not None:
            names.append(name)
            await wait_for_calls(self._connection)  # the next one may build on their functions being gone
        missing = await self._do(self._create_roles_step)
        retired = await self._replace_code()
        if retired is None:
            await self._do(lambda: change_grants(self._connection, self._files))
        elif self._files.setup:
            await self._do(lambda: self._connection.execute(self._files.setup))
        dropped = []
        while retired is None and (identity := await self._do(self._drop_step)) is not None:
            dropped.append(identity)
        return MigrationReport(
            number=self._files.number,
            applied=tuple(names),
            code_applied=retired is not None,
            retired=retired or (),
            dropped=tuple(dropped),
            administrator_sql=administrator_sql(self._files, missing) if missing else None,
        )

    async def _do(self, step: Callable[[], Awaitable[T]]) -> T:
        for attempt in range(1, self._attempts + 1):
            try:
                async with self._connection.transaction(isolation="read_committed"):
                    # Other migrators may take long: wait for them without limit, and for everybody else's locks only
                    # a moment.
                    await self._connection.execute(f"set local lock_timeout = 0; {LOCK_SQL}; {SETTINGS_SQL}")
                    await self._connection.execute(f"set local lock_timeout = {self._lock_timeout_ms}")
                    await _become_owner(self._connection)
                    return await step()
            except (
                asyncpg.LockNotAvailableError,
                asyncpg.DeadlockDetectedError,
                asyncpg.InternalServerError,
            ) as error:
                # The catalogue's own "tuple concurrently updated" is no more than another lock we did not get.
                if isinstance(error, asyncpg.InternalServerError) and "concurrently" not in str(error):
                    raise
                if attempt == self._attempts:
                    raise MigrationBlocked(
                        f"other transactions held locks that the migration needs ({error}); the schema works as it "
                        "is, run `fenceline migrate` again when they have ended"
                    ) from error
                await asyncio.sleep(min(0.1 * attempt, 1.5) * random.uniform(0.5, 1.0))  # noqa: S311 - spreads retries
        raise ValueError("attempts must be 1 or more")

    async def _install_step(self) -> MigrationReport | None:
        """All of it at once, where there is nothing yet; None: there is a schema."""
        applied = await applied_migrations(self._connection)
        verify(self._files, applied)
        if len(applied) > self._files.number:
            return MigrationReport(number=len(applied), newer=True)
        if applied:
            return None
        await refuse_foreign(self._connection)
        await self._connection.execute(self._files.bootstrap)
        for migration in self._files.migrations:
            await self._apply(migration)
        await create_code(self._connection, self._files.code)
        if self._files.setup:
            await self._connection.execute(self._files.setup)
        await self._record_code()
        missing = await self._create_roles_step()
        await self._connection.execute(grants_sql(self._files))
        await apply_lane_overrides(self._connection)
        return MigrationReport(
            number=self._files.number,
            applied=tuple(migration.name for migration in self._files.migrations),
            code_applied=True,
            administrator_sql=administrator_sql(self._files, missing) if missing else None,
        )

    async def _apply_next_step(self) -> str | None:
        applied = await applied_migrations(self._connection)
        if len(applied) >= self._files.number:
            return None
        migration = self._files.migrations[len(applied)]
        await self._apply(migration)
        return migration.name

    async def _apply(self, migration: Migration) -> None:
        try:
            await self._connection.execute(migration.text)
        except asyncpg.PostgresError as error:
            error.add_note(f"while applying {migration.name}")
            raise
        await self._connection.execute(
            RECORD_MIGRATION_SQL.format("$1, $2, $3, $4"),
            migration.number,
            migration.name,
            migration.checksum,
            migration.compatible_from,
        )

    async def _create_roles_step(self) -> list[str]:
        """As the user who migrates, who may have the right to create roles; returns which are missing."""
        if not await missing_roles(self._connection, self._files):
            return []
        await self._connection.execute("select set_config('role', $1, true)", self._user)
        await self._connection.execute(create_roles_sql(self._files))
        await _become_owner(self._connection)
        return await missing_roles(self._connection, self._files)

    async def _replace_code(self) -> tuple[str, ...] | None:
        """What was set aside; None: the code was in place."""
        try:
            return await self._do(self._replace_code_step)
        except ReshapedError as error:
            reshaped = error.names
        await self._do(lambda: self._put_beside_step(reshaped))
        await wait_for_calls(self._connection)
        return await self._do(lambda: self._replace_code_step(reshaped))

    async def _replace_code_step(self, reshaped: frozenset[str] = frozenset()) -> tuple[str, ...] | None:
        if not await code_differs(self._connection, self._files):
            await self._connection.execute(SAME_CODE_SQL, self._files.number)
            return None
        known = await self._known_files()
        changed = [
            file
            for file in self._files.code
            if known.get(file.key) != checksum_of(file.text) or (reshaped and file.kind == "view")
        ]
        names = {file.name for file in self._files.code}
        retired = await replace_functions(self._connection, changed, names, reshaped=reshaped)
        await self._record_code()
        await self._replace_views(changed, self._files)
        # Names that existed only in between are not reported.
        between = tuple(f"fenceline.{file.name}(" for file in under_own_names(self._files.code, reshaped))
        ours = tuple(f"fenceline.{name}(" for name in names)
        return tuple(name for name in retired if name.startswith(ours) or not name.startswith(between))

    async def _put_beside_step(self, reshaped: frozenset[str]) -> None:
        """All of the new code, with functions of a new shape beside those of the old one."""
        if not await code_differs(self._connection, self._files):
            return
        await self._known_files()
        # From here until the next step no file is known to be in place, so that the next migrator would put in all.
        await self._connection.execute("update fenceline.code set files = null, checksum = ''")
        own = under_own_names(self._files.code, reshaped)
        await replace_functions(self._connection, own, {file.name for file in (*own, *self._files.code)})
        await self._replace_views(own, dataclasses.replace(self._files, code=(*self._files.code, *own)))

    async def _replace_views(self, changed: Collection[CodeFile], granted: SchemaFiles) -> None:
        """With the grants of everything: as much as possible is done before a view is locked."""
        await change_grants(self._connection, granted)
        await replace_views(self._connection, changed)
        await change_grants(self._connection, granted)  # a view that was made anew has none

    async def _known_files(self) -> dict[str, str]:
        await self._connection.execute(self._files.bootstrap)  # the release before may not have kept them
        known: str | None = await self._connection.fetchval("select files from fenceline.code")
        return {} if known is None else json.loads(known)

    async def _record_code(self) -> None:
        await self._connection.execute(
            RECORD_CODE_SQL.format("$1, $2, $3"),
            code_checksum(self._files),
            self._files.number,
            json.dumps(file_checksums(self._files)),
        )

    async def _drop_step(self) -> str | None:
        for definition in await read_retired(self._connection, self._keep_seconds):
            if await drop(self._connection, definition):
                return definition.identity
        return None


async def _become_owner(connection: Connection) -> None:
    """Whoever migrates, one role owns everything: functions run with their owner's rights, so it must not
    vary.
    """
    await connection.execute(
        "select set_config('role', pg_get_userbyid(nspowner)::text, true) from pg_namespace "
        "where nspname = 'fenceline' and pg_get_userbyid(nspowner) <> current_user"
    )
