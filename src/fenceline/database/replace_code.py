"""Puts the functions and views of the files in place of those in the database, while calls are under way.

One transaction, so that functions which belong together change together. It locks nothing that a call needs, but for
the views that change, and those last:

- A function is replaced in place: calls find the old text or the new one, and never none.
- What no file defines any more is not dropped but set aside (`retire`): calls that began before may still name it.
- A function whose result or parameters change cannot be replaced in place, and a call under way would trip over the
  new shape. `replace_functions` then changes nothing and says which (`ReshapedError`); `reshape` goes round it in two
  steps.
- A view that only gained columns at its end is replaced in place; another one is dropped and made anew. Never with
  CASCADE: what somebody else made on top of ours is not ours to drop.
"""

from collections.abc import Collection

import asyncpg

from fenceline.database.definitions import Connection, Definition, read_definitions
from fenceline.database.retire import move_aside, retire, revive
from fenceline.database.schema_files import CodeFile

__all__ = ["Connection", "ReshapedError", "create_code", "replace_functions", "replace_views"]

# Cannot change return type, parameter names or defaults; is a procedure.
_NOT_REPLACEABLE = (asyncpg.InvalidFunctionDefinitionError, asyncpg.WrongObjectTypeError)


class ReshapedError(Exception):
    """These functions have another shape than those in place; nothing was changed."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = frozenset(names)


async def create_code(connection: Connection, code: Collection[CodeFile]) -> None:
    """Make the functions and views in a schema that has none.

    The caller's transaction must have `check_function_bodies` off, as functions may name each other in any order, and
    a `search_path` without `fenceline`, so that names print qualified.
    """
    for file in code:
        await _create(connection, file)


async def replace_functions(
    connection: Connection, changed: Collection[CodeFile], names: Collection[str], *, reshaped: Collection[str] = ()
) -> tuple[str, ...]:
    """Put the changed functions in place; `names` are those of all files. Returns what was set aside.

    `reshaped` functions make room for their successors. Settings as for `create_code`. Raises `ReshapedError`, and
    whatever PostgreSQL says about a file, with a note that names it.
    """
    before = await read_definitions(connection)
    old = [found for found in before if found.kind == "routine" and found.name in reshaped]
    moved = [await move_aside(connection, definition) for definition in old]
    functions = [file for file in changed if file.kind == "function"]
    conflicts = {file.name for file in functions if not await _replace_function(connection, file)}
    now = await read_definitions(connection)
    untouched = {(found.oid, found.written_by) for found in before}
    new = [found for found in now if (found.oid, found.written_by) not in untouched]
    rest = [found for found in now if (found.oid, found.written_by) in untouched]
    conflicts |= _ambiguous(new, rest)
    if conflicts:
        raise ReshapedError(conflicts)
    await revive(connection, [found for found in new if found.name in names])
    replaced = {file.name for file in functions}
    gone = [found for found in rest if found.name not in names or found.name in replaced]
    retired = await retire(connection, [*gone, *(await _under_new_names(connection, moved))])
    return tuple(sorted({*retired} - {*moved} | {found.identity for found in old}))


async def replace_views(connection: Connection, changed: Collection[CodeFile]) -> None:
    """Put the changed views in place. Last in its transaction, because readers wait from here to its end."""
    names = {file.name for file in changed if file.kind == "view"}
    for file in changed:
        if file.kind == "view":
            await _replace_view(connection, file)
    if names:
        found = await read_definitions(connection)
        await revive(connection, [view for view in found if view.kind == "view" and view.name in names])


def _ambiguous(new: Collection[Definition], old: Collection[Definition]) -> set[str]:
    """Names of new functions beside which an old one of the same name would take some of the calls."""
    return {
        mine.name
        for mine in new
        for other in old
        if mine.kind == other.kind == "routine" and mine.name == other.name and mine.takes_calls_of(other)
    }


async def _under_new_names(connection: Connection, identities: Collection[str]) -> list[Definition]:
    return [found for found in await read_definitions(connection) if found.identity in identities]


async def _replace_function(connection: Connection, file: CodeFile) -> bool:
    try:
        async with connection.transaction():
            await _create(connection, file)
    except _NOT_REPLACEABLE:
        return False
    return True


async def _replace_view(connection: Connection, file: CodeFile) -> None:
    try:
        async with connection.transaction():
            await _create(connection, file)
    except asyncpg.InvalidTableDefinitionError as refusal:
        try:
            await connection.execute(f"drop view fenceline.{file.name}")
        except asyncpg.DependentObjectsStillExistError:
            raise refusal from None
        await _create(connection, file)


async def _create(connection: Connection, file: CodeFile) -> None:
    try:
        await connection.execute(file.text)
    except asyncpg.PostgresError as error:
        error.add_note(f"while applying {file.path}")
        raise
