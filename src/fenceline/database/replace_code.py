"""Puts the functions and views of the files in place of those in the database, inside the migrator's
transaction.

In place first: `create or replace` keeps what others have built on our functions and views. Where PostgreSQL
refuses that (another return type, renamed parameters, dropped view columns), everything is dropped and made
anew. Never with CASCADE: what somebody else made on top of ours is not ours to drop.
"""

from dataclasses import dataclass
from typing import TypeAlias

import asyncpg

from fenceline.database.schema_files import CodeFile

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# Cannot change return type or parameter names; cannot drop view columns; is a procedure; two overloads fit a
# call.
_NOT_REPLACEABLE = (
    asyncpg.InvalidFunctionDefinitionError,
    asyncpg.InvalidTableDefinitionError,
    asyncpg.WrongObjectTypeError,
    asyncpg.AmbiguousFunctionError,
)

# Each definition with the transaction that wrote it: "create or replace" rewrites the row even when nothing
# changed, so a definition whose row has not moved is one that no file defines any more. For views that row is
# the rule.
_DEFINITIONS = """
select 'routine' as kind, p.oid, p.oid::regprocedure::text as name, p.xmin::text as written_by
from pg_proc p where p.pronamespace = 'fenceline'::regnamespace
union all
select 'view', c.oid, c.oid::regclass::text, r.xmin::text
from pg_class c join pg_rewrite r on r.ev_class = c.oid and r.rulename = '_RETURN'
where c.relnamespace = 'fenceline'::regnamespace and c.relkind = 'v'
order by kind, name
"""


@dataclass(frozen=True, slots=True)
class Definition:
    kind: str
    oid: int
    name: str
    written_by: str


async def replace_code(connection: Connection, code: tuple[CodeFile, ...]) -> tuple[str, ...]:
    """Make the code of the schema that of the files; returns the names of what no file defines any more.

    The caller's transaction must have `check_function_bodies` off, as functions may name each other in any
    order, and a `search_path` without `fenceline`, so that names print qualified.
    """
    before = await _definitions(connection)
    try:
        # The savepoint matters twice: to undo a failed try, and because it writes under a transaction id of
        # its own.
        async with connection.transaction():
            if await _apply(connection, code, before):
                raise _LeftoverError  # noqa: TRY301 - it is the savepoint that must see it
    except (*_NOT_REPLACEABLE, _LeftoverError):
        async with connection.transaction():
            await _drop(connection, before)
            # What is left now belongs to a table (a default, a constraint) or to somebody else, and stays.
            await _apply(connection, code, before)
    after = {definition.name for definition in await _definitions(connection)}
    return tuple(definition.name for definition in before if definition.name not in after)


class _LeftoverError(Exception):
    """A definition without a file could not be dropped in place."""


async def _apply(connection: Connection, code: tuple[CodeFile, ...], before: list[Definition]) -> list[Definition]:
    """Create all; returns what has no file and could not be dropped."""
    await _create(connection, code, kind="function")
    # Before the views, which must not bind to an overload that is about to go.
    await _drop(connection, await _unmoved(connection, before, kind="routine"))
    await _create(connection, code, kind="view")
    await _drop(connection, await _unmoved(connection, before, kind="view"))
    return await _drop(connection, await _unmoved(connection, before, kind="routine"))


async def _create(connection: Connection, code: tuple[CodeFile, ...], *, kind: str) -> None:
    for file in code:
        if file.kind == kind:
            try:
                await connection.execute(file.text)
            except asyncpg.PostgresError as error:
                error.add_note(f"while applying {file.path}")
                raise


async def _drop(connection: Connection, definitions: list[Definition]) -> list[Definition]:
    """Drop what nothing else needs, in whatever order works; returns the rest."""
    waiting = definitions
    while waiting:
        needed: list[Definition] = []
        for definition in waiting:
            try:
                async with connection.transaction():
                    await connection.execute(f"drop {definition.kind} if exists {definition.name}")
            except asyncpg.DependentObjectsStillExistError:
                needed.append(definition)
        if len(needed) == len(waiting):
            break
        waiting = needed
    return waiting


async def _unmoved(connection: Connection, before: list[Definition], *, kind: str) -> list[Definition]:
    now = await _definitions(connection)
    return [definition for definition in now if definition.kind == kind and definition in before]


async def _definitions(connection: Connection) -> list[Definition]:
    return [Definition(**row) for row in await connection.fetch(_DEFINITIONS)]
