"""Leases of worker processes, kept in PostgreSQL directly, together with the fleet's maintenance.

Two connections, and now and then a third: maintenance and the report of a process's end may take their time, a
heartbeat may not. A report may have to wait for a lock, so it has its own connection, open only while needed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fenceline.database import calls
from fenceline.database.calls.workers import LeaseNotice
from fenceline.delivery.contract import Death
from fenceline.runtime.maintenance import Maintenance
from fenceline.runtime.outage import Outage
from fenceline.runtime.reconnecting import FINISH_LIMITS, MAINTENANCE_LIMITS, ReconnectingConnection
from fenceline.runtime.session_settings import Settings, limits

if TYPE_CHECKING:
    from fenceline.runtime.pool import Connection

log = logging.getLogger("fenceline.worker")

#: The pause before attempts are tried again that another transaction has locked.
LEFT_SECONDS = 0.5


class PostgresLeases:
    def __init__(self, connect: "Callable[[Settings | None], Awaitable[Connection]]", answer_seconds: float) -> None:
        """`answer_seconds`: how long a heartbeat may take before its connection is considered broken."""
        outage = Outage("database", log)
        self._heartbeats = ReconnectingConnection(
            "heartbeat",
            connect,
            settings=limits(lock_seconds=answer_seconds, statement_seconds=answer_seconds),
            answer_seconds=answer_seconds,
            outage=outage,
        )
        self._accounts = ReconnectingConnection("accounts", connect, settings=FINISH_LIMITS, outage=outage)
        self._accounts_in_use = 0
        self._upkeep = ReconnectingConnection(
            "maintenance", connect, settings=MAINTENANCE_LIMITS, answer_seconds=600.0, outage=outage
        )
        self.maintenance = Maintenance(self._upkeep.try_call)

    async def renew(self, worker_ids: Sequence[int], blocked: Mapping[int, Mapping[str, Any]]) -> list[LeaseNotice]:
        return await self._heartbeats.call(calls.workers.keep_leases(list(worker_ids), blocked))

    async def maintain(self) -> None:
        await self.maintenance.run()

    async def report_death(self, worker_id: int, report: Mapping[str, Any]) -> Death:
        death = Death()
        async with self._account() as connection:
            while True:
                answer = await connection.call(calls.workers.report_death(worker_id, report))
                death.ended += answer["ended"]
                death.suspects += answer["suspects"]
                death.quarantined += answer["quarantined"]
                if not answer["left"]:
                    return death
                await asyncio.sleep(LEFT_SECONDS)

    async def sign_off(self, worker_id: int, fail_kinds: Sequence[str]) -> None:
        async with self._account() as connection:
            await connection.call(calls.workers.stop_worker(worker_id, list(fail_kinds)))

    @asynccontextmanager
    async def _account(self) -> AsyncIterator[ReconnectingConnection]:
        self._accounts_in_use += 1
        try:
            yield self._accounts
        finally:
            self._accounts_in_use -= 1
            if not self._accounts_in_use:
                self._accounts.close()

    async def close(self) -> None:
        for connection in (self._heartbeats, self._accounts, self._upkeep):
            connection.close()
