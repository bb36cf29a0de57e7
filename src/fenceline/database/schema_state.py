"""What a database says about its schema, whether this program fits it, and what a run of the migrator does."""

from dataclasses import dataclass

from fenceline.database.definitions import Connection
from fenceline.database.grants import code_checksum
from fenceline.database.schema_files import ROLES, SchemaFiles, read_schema_files
from fenceline.errors import (
    MigrationChanged,
    SchemaForbidden,
    SchemaForeign,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What a run of `migrate` would do now."""

    migrations: tuple[str, ...]
    code: bool

    def __bool__(self) -> bool:
        return bool(self.migrations) or self.code


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """What one run did. `str()` is what `fenceline migrate` prints."""

    number: int  # the highest migration now in the database
    applied: tuple[str, ...] = ()  # names of the migrations this run applied
    code_applied: bool = False  # whether it put functions and views in place
    retired: tuple[str, ...] = ()  # functions and views that no file defines any more, set aside
    dropped: tuple[str, ...] = ()  # of those that an earlier run set aside
    newer: bool = False  # the schema is newer than this program, and was left as it is
    administrator_sql: str | None = None  # roles this user may not create; everything else works without them

    def __str__(self) -> str:
        lines = [f"applied {name}" for name in self.applied]
        if self.code_applied:
            lines.append("functions and views are in place")
        if self.retired:
            lines.append(f"set aside {', '.join(self.retired)}: a later run drops them, when no older worker is left")
        lines += [f"dropped {name}" for name in self.dropped]
        if self.newer:
            lines.append(f"the schema (number {self.number}) is newer than this program and fits it: left as it is")
        elif not lines:
            lines.append(f"the schema is up to date (number {self.number})")
        if self.administrator_sql is not None:
            lines.append("database roles are missing that this user may not create; an administrator can run:")
            lines.append(self.administrator_sql)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class AppliedMigration:
    number: int
    name: str
    checksum: str
    compatible_from: int


async def pending(connection: Connection, *, files: SchemaFiles | None = None) -> Pending:
    """Say what `migrate` would do, as the schema's owner sees it. Raises what `migrate` raises about the
    schema.
    """
    wanted = files or read_schema_files()
    applied = await applied_migrations(connection)
    verify(wanted, applied)
    names = tuple(migration.name for migration in wanted.migrations[len(applied) :])
    newer = len(applied) > wanted.number
    return Pending(migrations=names, code=not newer and await code_differs(connection, wanted))


async def check_schema(connection: Connection, *, files: SchemaFiles | None = None) -> None:
    """Return if this program can work on the schema; every role of Fenceline may ask.

    Raises `SchemaMissing`, `SchemaOutdated`, `SchemaTooNew` or `SchemaForbidden`; the message says what to
    run.
    """
    wanted = files or read_schema_files(with_code=False)
    schema = await connection.fetchrow(
        """
        select has_schema_privilege(n.oid, 'usage') as usable, current_user::text as role,
               exists (select from pg_catalog.pg_proc p
                       where p.pronamespace = n.oid and p.proname = 'schema_version') as versioned,
               exists (select from pg_catalog.pg_proc p
                       where p.pronamespace = n.oid and p.proname = 'code_number') as numbered
        from pg_catalog.pg_namespace n where n.nspname = 'fenceline'
        """
    )
    if schema is None or not schema["versioned"]:
        raise SchemaMissing("this database has no Fenceline schema: run `fenceline migrate`")
    if not schema["usable"]:
        raise SchemaForbidden(
            f"role {schema['role']} may not use the schema fenceline: an administrator must grant it one of "
            + ", ".join(wanted.role_name(role) for role in ROLES)
        )
    version = await connection.fetchrow("select number, compatible_from from fenceline.schema_version()")
    assert version is not None  # noqa: S101 - an aggregate has one row
    _refuse_incompatible(wanted, version["number"], version["compatible_from"])
    if version["number"] < wanted.required_number:
        raise SchemaOutdated(
            f"the Fenceline schema has number {version['number']}, this program needs "
            f"{wanted.required_number}: run `fenceline migrate`"
        )
    code = await connection.fetchval("select fenceline.code_number()") if schema["numbered"] else 0
    if code < wanted.required_number:
        raise SchemaOutdated(
            f"the functions of the Fenceline schema have number {code}, this program needs {wanted.required_number}: "
            "a migration is under way or was broken off, run `fenceline migrate`"
        )


def verify(files: SchemaFiles, applied: list[AppliedMigration]) -> None:
    _refuse_incompatible(files, len(applied), max((row.compatible_from for row in applied), default=0))
    for row, migration in zip(applied, files.migrations, strict=False):
        if (row.number, row.name, row.checksum) != (migration.number, migration.name, migration.checksum):
            raise MigrationChanged(
                f"migration {row.name} was applied to this database as another text than this "
                f"program's {migration.name}.sql: applied migrations must not change, add a new one instead"
            )


def _refuse_incompatible(files: SchemaFiles, number: int, compatible_from: int) -> None:
    if compatible_from > files.number:
        raise SchemaTooNew(
            f"the Fenceline schema has number {number} and needs a program that knows number "
            f"{compatible_from} or later, this one knows {files.number}: upgrade the fenceline package"
        )


async def applied_migrations(connection: Connection) -> list[AppliedMigration]:
    if await connection.fetchval("select to_regclass('fenceline.migration')") is None:
        return []
    rows = await connection.fetch(
        "select number, name, checksum, compatible_from from fenceline.migration order by number"
    )
    return [AppliedMigration(**row) for row in rows]


async def code_differs(connection: Connection, files: SchemaFiles) -> bool:
    if await connection.fetchval("select to_regclass('fenceline.code')") is None:
        return True
    checksum = await connection.fetchval("select checksum from fenceline.code")
    return bool(checksum != code_checksum(files))


async def refuse_foreign(connection: Connection) -> None:
    """Raises `SchemaForeign` when there is a schema of our name that is not ours."""
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
