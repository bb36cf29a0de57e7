"""Lanes that a backend delivers: messages name jobs, and the worker claims those very jobs from PostgreSQL.

Everything else is as with PostgreSQL alone, and so are the lanes that no backend delivers. Suspects are claimed from
the database too: only the worker knows how many of them it may run.
"""

import asyncio
from collections.abc import Sequence

from fenceline.backends.contract import Backend, BackendUnavailable
from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.context.attempt import Attempt
from fenceline.database import calls
from fenceline.database.calls.lanes import LaneForWorker
from fenceline.delivery.contract import ClaimRequest, Lease, Notices, WorkerRecord
from fenceline.delivery.postgres import PostgresDelivery
from fenceline.runtime.sender import Sender


class MessageDelivery(PostgresDelivery):
    def __init__(self, app: App, backend: Backend, *, transactions: int = 1, owns_app: bool = False) -> None:
        super().__init__(app, transactions=transactions, owns_app=owns_app)
        self.cannot = backend.cannot
        self.backend_name = backend.name
        self._is_default = app_parts(app).delivery.name == backend.name
        self._backend = backend
        self._sender = Sender(backend, self._claims.call)
        self._delivered: frozenset[str] = frozenset()

    async def register(self, worker: WorkerRecord) -> Lease:
        lease = await super().register(worker)
        if self._is_default:
            named = {settings.get("lane", "default") for settings in worker.kinds.values()} | set(worker.lanes or ())
            await self._claims.call(calls.messages.declare_delivery(sorted(named), self._backend.name))
        return lease

    async def read_lanes(self) -> list[LaneForWorker]:
        deliveries = await self._claims.call(calls.messages.lane_deliveries())
        self._delivered = frozenset(lane for lane, name in deliveries.items() if name == self._backend.name)
        return await super().read_lanes()

    async def claim(self, request: ClaimRequest) -> list[Attempt]:
        if request.alone or request.lane not in self._delivered:
            return await super().claim(request)
        await self._send(request)
        try:
            named = await self._backend.receive(request.lane, request.limit)
        except BackendUnavailable as error:  # `listen` wakes us when it is back
            self._sender.note_away(error)
            return []
        return await self._claim_named(request, named) if named else []

    async def _send(self, request: ClaimRequest) -> None:
        """Send messages for what is due in a lane; if nothing is, ask to be notified."""
        await self._sender.run_once([request.lane], worker_id=self._worker_id, wait_seconds=request.wait_seconds)

    async def _claim_named(self, request: ClaimRequest, job_ids: Sequence[int]) -> list[Attempt]:
        claim = calls.attempts.claim_named_jobs(
            self._worker_id,
            request.lane,
            job_ids,
            request_id=request.request_id,
            kinds=None if request.kinds is None else list(request.kinds),
        )
        return await self._claimed(request.lane, claim)

    async def listen(self, notices: Notices) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(super().listen(notices))
            tasks.create_task(self._backend.listen(notices.wake))
            tasks.create_task(self._sender.keep_sending())

    async def close(self) -> None:
        await self._sender.close()
        await super().close()


def database_delivery(app: App, *, transactions: int = 1, owns_app: bool = False) -> PostgresDelivery:
    """The delivery of a worker that has a database, with messages where the app has a backend."""
    make_backend = app_parts(app).delivery.make_backend
    if make_backend is None:
        return PostgresDelivery(app, transactions=transactions, owns_app=owns_app)
    return MessageDelivery(app, make_backend(), transactions=transactions, owns_app=owns_app)
