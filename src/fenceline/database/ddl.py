"""The whole schema as one script, for review and for installing by `psql` where no program may."""

import json

from fenceline.database.grants import code_checksum, create_roles_sql, file_checksums, grants_sql
from fenceline.database.migrate import LOCK_SQL, RECORD_CODE_SQL, RECORD_MIGRATION_SQL, SETTINGS_SQL
from fenceline.database.schema_files import Migration, SchemaFiles, read_schema_files


def ddl() -> str:
    """What `migrate` does to an empty database, as a script for `psql`; a later `migrate` finds it up to date."""
    wanted = read_schema_files()
    parts = [
        "-- Fenceline: install into an empty database with psql. All or nothing.",
        "\\set ON_ERROR_STOP on",
        "begin;",
        f"{LOCK_SQL};{SETTINGS_SQL}",
        wanted.bootstrap,
        *(f"{migration.text}\n{_record(migration)}" for migration in wanted.migrations),
        *(file.text for file in wanted.code),
        wanted.setup,
        _record_code(wanted),
        create_roles_sql(wanted),
        grants_sql(wanted),
        "commit;",
    ]
    return "\n".join(part.strip() + "\n" for part in parts)


def _record(migration: Migration) -> str:
    # Safe to quote so: a name is letters, digits and underscores, a checksum is hexadecimal.
    values = f"{migration.number}, '{migration.name}', '{migration.checksum}', {migration.compatible_from}"
    return RECORD_MIGRATION_SQL.format(values) + ";"


def _record_code(files: SchemaFiles) -> str:
    # As above: paths are file names, checksums are hexadecimal.
    values = f"'{code_checksum(files)}', {files.number}, '{json.dumps(file_checksums(files))}'"
    return RECORD_CODE_SQL.format(values).strip() + ";"
