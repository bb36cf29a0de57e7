"""The blocking twin of verbs.py.

Generated from verbs.py by scripts/generate_sync.py: change that file, not this one.
"""

from typing import Any, TypeVar

from fenceline.client.sync_database import GetSyncDatabase
from fenceline.database.call import Call

T = TypeVar("T")


class Verbs:
    __slots__ = ("_get_database",)

    def __init__(self, get_database: GetSyncDatabase) -> None:
        self._get_database = get_database

    def _call(self, call: Call[T], connection: Any = None) -> T:
        return self._get_database().call(call, connection)

    def _actor(self, named: str | None) -> str:
        """The given actor, or else the app's."""
        return named or self._get_database().actor
