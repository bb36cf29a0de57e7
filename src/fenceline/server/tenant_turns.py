"""How requests use the database: each tenant has a share of the connections, and every call has a deadline.

A tenant with many or slow calls waits for its own calls, and does not hold up other tenants. The deadline is enforced
here besides in the sessions, whose settings do not work behind a pooler.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TypeVar

from fenceline.database.call import Call
from fenceline.errors import DatabaseBusy
from fenceline.runtime.database import Database

T = TypeVar("T")


@dataclass(slots=True)
class _Line:
    free: asyncio.Semaphore
    users: int = field(default=0)


class Turns:
    """`each`: calls of one tenant at a time. `seconds`: for a call, including the wait for its turn."""

    def __init__(self, database: Database, *, each: int, seconds: float) -> None:
        self.database = database
        self.seconds = seconds
        self._each = each
        self._lines: dict[str, _Line] = {}

    def of(self, tenant: str) -> "TenantDatabase":
        return TenantDatabase(self, tenant)

    @contextlib.asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        line = self._lines.get(tenant)
        if line is None:
            line = self._lines[tenant] = _Line(asyncio.Semaphore(self._each))
        line.users += 1
        try:
            async with line.free:
                yield
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[tenant]


class TenantDatabase:
    """Like a `Database`, for one tenant."""

    def __init__(self, turns: Turns, tenant: str) -> None:
        self._turns = turns
        self._tenant = tenant

    async def call(self, call: Call[T]) -> T:
        """Raises what `Database.call` raises, and DatabaseBusy if it takes too long."""
        turns = self._turns
        try:
            async with asyncio.timeout(turns.seconds), turns.turn(self._tenant):
                return await turns.database.call(call)
        except TimeoutError:
            raise DatabaseBusy(
                f"the database did not answer within {turns.seconds:g} s, or the tenant's other requests were not done"
            ) from None
