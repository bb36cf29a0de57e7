"""Functions whose result or parameters change, replaced while calls are under way.

A call that has begun runs the old text of its function to the end, and finds the functions it calls by name, one by
one: it must not find one of another shape. So the new code comes in twice. First with the new shapes under names of
their own, beside the old ones, and everything that calls them says those names. Then, when the calls from before have
ended, the old ones move aside and all has the names of the files.
"""

import asyncio
import dataclasses
import re
from collections.abc import Collection

from fenceline.database.definitions import Connection
from fenceline.database.schema_files import CodeFile, checksum_of

#: Calls take milliseconds. A session that is idle in a transaction is not in a call, and need not be waited for.
WAIT_SECONDS = 5.0
POLL_SECONDS = 0.01

# Virtual transactions of this database, seen by every role; a virtual transaction is never used again.
_OTHERS = """
select l.virtualxid from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'virtualxid' and l.granted and l.pid <> pg_backend_pid()
  and a.datname = current_database() and a.state is distinct from 'idle in transaction'
"""


def under_own_names(code: Collection[CodeFile], reshaped: Collection[str]) -> tuple[CodeFile, ...]:
    """The code with other names for the functions of a new shape, in their definitions and wherever they are called."""
    if not reshaped:
        return tuple(code)
    marks = {file.name: checksum_of(file.text)[:8] for file in code if file.name in reshaped}
    pattern = re.compile(rf"\bfenceline\.({'|'.join(map(re.escape, sorted(marks)))})(?=\s*\()")

    def own_name(name: str) -> str:
        return f"{name[:40]}__{marks[name]}"

    return tuple(
        dataclasses.replace(
            file,
            name=own_name(file.name) if file.name in marks else file.name,
            text=pattern.sub(lambda match: f"fenceline.{own_name(match[1])}", file.text),
        )
        for file in code
    )


async def wait_for_calls(connection: Connection) -> None:
    """Wait until the calls under way have ended, for at most five seconds."""
    waiting = await _others(connection)
    for _ in range(round(WAIT_SECONDS / POLL_SECONDS)):
        if not waiting:
            return
        await asyncio.sleep(POLL_SECONDS)
        waiting &= await _others(connection)


async def _others(connection: Connection) -> set[str]:
    return {row["virtualxid"] for row in await connection.fetch(_OTHERS)}
