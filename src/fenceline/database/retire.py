"""Functions and views that no file defines any more: set aside by the migration that replaces them, dropped by a
later one.

A call that began before the migration may still name them, and a worker of the release before may call them for as long
as it lives. What is set aside carries a comment that says since when.
"""

from collections.abc import Collection
from importlib.metadata import version

import asyncpg

from fenceline.database.definitions import Connection, Definition, read_definitions

_NOTE = "fenceline: set aside at "

_RETIRE = """
do $$
begin
  execute format('comment on {kind} {identity} is %L', '{note}' || clock_timestamp());
end $$;
"""

# A worker that started before the code was replaced, or has another version, may call functions of the code before.
_OLDER_WORKERS = """
select exists (
  select from fenceline.worker w
  where w.stopped_at is null and w.lease_until > clock_timestamp() and not w.runner
    and (w.version is distinct from $1 or w.started_at < (select c.applied_at from fenceline.code c)))
"""

_LONG_ENOUGH = "select substr($1, length($2) + 1)::timestamptz < clock_timestamp() - make_interval(secs => $3)"


async def move_aside(connection: Connection, definition: Definition) -> str:
    """Rename a function, so that another can have its name; returns how it is called now.

    Not dropped: a plan that is about to run it has its number.
    """
    name = f"{definition.name[:40]}__{definition.oid}"
    await connection.execute(f"alter routine {definition.identity} rename to {name}")
    renamed: str = await connection.fetchval("select $1::oid::regprocedure::text", definition.oid)
    return renamed


async def retire(connection: Connection, definitions: Collection[Definition]) -> tuple[str, ...]:
    """Note on these that their time is over; returns what was not retired before."""
    fresh = [definition for definition in definitions if not is_retired(definition.note)]
    for definition in fresh:
        await connection.execute(
            _RETIRE.format(kind=definition.kind, identity=definition.identity.replace("'", "''"), note=_NOTE)
        )
    return tuple(definition.identity for definition in fresh)


async def revive(connection: Connection, definitions: Collection[Definition]) -> None:
    """Take the note off what a file defines again."""
    for definition in definitions:
        if is_retired(definition.note):
            await connection.execute(f"comment on {definition.kind} {definition.identity} is null")


async def read_retired(connection: Connection, keep_seconds: float) -> list[Definition]:
    """What may be dropped: set aside for so long, and no live worker is older than the code in place."""
    found = [definition for definition in await read_definitions(connection) if is_retired(definition.note)]
    if not found or await _has_older_workers(connection):
        return []
    return [
        definition
        for definition in found
        if await connection.fetchval(_LONG_ENOUGH, definition.note, _NOTE, keep_seconds)
    ]


async def drop(connection: Connection, definition: Definition) -> bool:
    """Whether it could be dropped: what a table or somebody else's view needs stays."""
    try:
        async with connection.transaction():
            await connection.execute(f"drop {definition.kind} if exists {definition.identity}")
    except asyncpg.DependentObjectsStillExistError:
        return False
    return True


async def _has_older_workers(connection: Connection) -> bool:
    if await connection.fetchval("select to_regclass('fenceline.worker')") is None:
        return False
    return bool(await connection.fetchval(_OLDER_WORKERS, version("fenceline")))


def is_retired(note: str | None) -> bool:
    """Whether a comment on a function or view says that its time is over."""
    return note is not None and note.startswith(_NOTE)
