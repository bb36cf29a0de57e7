import dataclasses
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import asyncpg
import psycopg
import pytest

from fenceline.database.schema_files import ROLES, SchemaFiles, read_schema_files

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connect: TypeAlias = Callable[[], Awaitable[Connection]]
ReadCatalogue: TypeAlias = Callable[[Connection], Awaitable[list[str]]]

# Everything that makes a schema what it is, by name, without oids and times. An empty acl is the default one, and
# the order of an acl says who was granted first.
CATALOGUE = """
select format('schema %s',
              (select array_agg(i::text order by i::text)
               from unnest(coalesce(nspacl, acldefault('n', nspowner))) i)) as line
from pg_namespace where nspname = 'fenceline'
union all
select format('relation %s %s %s %s %s %s %s', oid::regclass, relkind, relpersistence, reloptions,
              (select array_agg(i::text order by i::text) from unnest(coalesce(relacl,
                acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))) i),
              pg_get_userbyid(relowner), pg_get_expr(relpartbound, oid))
from pg_class where relnamespace = 'fenceline'::regnamespace
union all
select format('column %s %s %s %s %s %s %s', a.attrelid::regclass, a.attnum, a.attname,
              format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
              pg_get_expr(d.adbin, d.adrelid))
from pg_attribute a join pg_class c on c.oid = a.attrelid
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where c.relnamespace = 'fenceline'::regnamespace and a.attnum > 0 and not a.attisdropped
union all
select 'index ' || pg_get_indexdef(i.indexrelid)
from pg_index i join pg_class c on c.oid = i.indrelid where c.relnamespace = 'fenceline'::regnamespace
union all
select format('constraint %s %s', conname, pg_get_constraintdef(oid))
from pg_constraint where connamespace = 'fenceline'::regnamespace
union all
select 'trigger ' || pg_get_triggerdef(t.oid)
from pg_trigger t join pg_class c on c.oid = t.tgrelid where c.relnamespace = 'fenceline'::regnamespace
union all
select format('function %s %s %s',
              (select array_agg(i::text order by i::text)
               from unnest(coalesce(proacl, acldefault('f', proowner))) i),
              pg_get_userbyid(proowner),
              pg_get_functiondef(oid))
from pg_proc where pronamespace = 'fenceline'::regnamespace and prokind in ('f', 'p')
union all
select format('view %s %s', oid::regclass, pg_get_viewdef(oid))
from pg_class where relnamespace = 'fenceline'::regnamespace and relkind = 'v'
union all
select format('type %s %s', oid::regtype, typtype) from pg_type where typnamespace = 'fenceline'::regnamespace
union all
select format('migration %s %s %s %s', number, name, checksum, compatible_from) from fenceline.migration
union all
select format('code %s %s %s', checksum, number, files) from fenceline.code
order by line
"""


@pytest.fixture
def read_catalogue() -> ReadCatalogue:
    """Reads a database's schema as text, to compare how two of them came about."""

    async def read(connection: Connection) -> list[str]:
        # Partitions of days come from a function and the date: two installs may have midnight between them.
        lines = [row["line"] for row in await connection.fetch(CATALOGUE)]
        return [line for line in lines if not re.search(r"(job|history)_\d{8}", line)]

    return read


@pytest.fixture
async def connect_empty(empty_database: str) -> AsyncIterator[Connect]:
    """Opens connections to a database without the schema."""
    connections: list[Connection] = []

    async def connect() -> Connection:
        connection: Connection = await asyncpg.connect(empty_database)
        connections.append(connection)
        return connection

    yield connect
    for connection in connections:
        connection.terminate()


@pytest.fixture
def role_prefix(administrator: "psycopg.Connection[tuple[object, ...]]") -> Iterator[str]:
    """Makes room for roles of this test alone. Ask for it before the database, whose grants must go first."""
    prefix = f"fenceline_test_{uuid4().hex[:12]}_"
    yield prefix
    for role in ROLES:
        administrator.execute(f"drop role if exists {prefix}{role}")


@pytest.fixture
def write_schema(tmp_path: Path) -> Callable[..., SchemaFiles]:
    """Writes a small schema: the texts of its migrations in order, its functions and views by name."""

    def write(
        *,
        migrations: Sequence[str] = (),
        functions: Mapping[str, str] | None = None,
        views: Mapping[str, str] | None = None,
    ) -> SchemaFiles:
        root = tmp_path / uuid4().hex
        ours = files("fenceline") / "sql"
        texts = {
            "bootstrap.sql": (ours / "bootstrap.sql").read_text(),
            "functions/schema_version.sql": (ours / "functions" / "rules" / "schema_version.sql").read_text(),
            "functions/code_number.sql": (ours / "functions" / "rules" / "code_number.sql").read_text(),
        }
        for number, text in enumerate(migrations, start=1):
            header = "" if text.startswith("--") else "-- compatible_from: 1\n"
            texts[f"migrations/{number:04}_pre_step.sql"] = header + text
        for folder, code in (("functions", functions or {}), ("views", views or {})):
            for name, text in code.items():
                texts[f"{folder}/{name}.sql"] = ("" if "-- roles:" in text else "-- roles: none\n") + text
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return read_schema_files(root)

    return write


@pytest.fixture
def with_own_roles(role_prefix: str) -> Callable[[SchemaFiles], SchemaFiles]:
    def with_prefix(schema: SchemaFiles) -> SchemaFiles:
        return dataclasses.replace(schema, role_prefix=role_prefix)

    return with_prefix
