"""What all verbs share: the way to the database, and on whose behalf they act.

`scripts/generate_sync.py` makes a blocking twin, `sync_*.py`, of each module of verbs; a test compares them. So verbs
go through a `Database` and await nothing else.
"""

from typing import Any, TypeVar

from fenceline.database.call import Call
from fenceline.runtime.database import GetDatabase

T = TypeVar("T")


class Verbs:
    __slots__ = ("_get_database",)

    def __init__(self, get_database: GetDatabase) -> None:
        self._get_database = get_database

    async def _call(self, call: Call[T], connection: Any = None) -> T:
        return await self._get_database().call(call, connection)

    def _actor(self, named: str | None) -> str:
        """The given actor, or else the app's."""
        return named or self._get_database().actor
