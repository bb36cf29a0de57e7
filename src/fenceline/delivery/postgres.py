"""The default delivery: workers claim from PostgreSQL itself, and are notified of new jobs.

Three connections: one to claim and to listen, one for what becomes of attempts, and one that the transactions of
handlers (`ctx.transaction()`) share.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast
from uuid import UUID

from fenceline.backends.arq import URL_VARIABLE
from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.context.attempt import Attempt, Ending, Report
from fenceline.context.attempt_api import SqlAttemptApi
from fenceline.context.endings import columns_of
from fenceline.database import calls
from fenceline.database.call import Call
from fenceline.database.calls.attempts import AttemptEnd
from fenceline.database.calls.lanes import LaneForWorker
from fenceline.database.decoding import Row
from fenceline.delivery.contract import AttemptNotice, ClaimRequest, Lease, Notices, Verdict, WorkerRecord
from fenceline.errors import ConnectionLost, DatabaseBusy, RefusedError, WorkerLost
from fenceline.runtime.listener import Listener
from fenceline.runtime.outage import Outage
from fenceline.runtime.reconnecting import CLAIM_LIMITS, FINISH_LIMITS, ReconnectingConnection

if TYPE_CHECKING:
    from fenceline.runtime.pool import Connection

T = TypeVar("T")

log = logging.getLogger("fenceline.worker")

LEASE_SECONDS = 30.0
_MISSING_LANE = "lane %r does not exist: make it with `fenceline lanes set %s --create`"
_OTHER_DELIVERY = "lane %r is delivered by %s, and this worker gets none of its jobs: %s"


class Calls(Protocol):
    """A way to the database that retries until it gets an answer."""

    async def call(self, call: Call[T]) -> T: ...

    async def try_call(self, call: Call[T]) -> T:
        """As `call`, but raises DatabaseBusy when another transaction holds what is needed: nothing was done."""


class SqlDelivery:
    """Calls of the state machine, over any connections."""

    cannot: Sequence[str] = ()
    turn_seconds = 0.0  # one connection for all claims

    def __init__(self, claims: Calls, writes: Calls) -> None:
        """`writes`: for what becomes of attempts, which must not queue behind a claim."""
        self._claims = claims
        self._writes = writes
        self.api = SqlAttemptApi(writes.call)
        self._worker_id = 0
        self._lanes: list[str] | None = None

    # The worker ------------------------------------------------------------------------------------------------------

    async def register(self, worker: WorkerRecord) -> Lease:
        await self._declare(worker.kinds)
        self._lanes = None if worker.lanes is None else list(worker.lanes)
        seconds = worker.lease_seconds or LEASE_SECONDS
        self._worker_id = await self._claims.call(
            calls.workers.register_worker(
                worker.name,
                lease_seconds=seconds,
                kinds=sorted(worker.kinds),
                lanes=self._lanes,
                host=worker.host,
                pid=worker.pid,
                version=worker.version,
                tells_starts=True,
                signatures=worker.signatures,
                labels=worker.labels,
            )
        )
        if self._lanes is not None:
            for name in sorted(set(self._lanes) - {lane.name for lane in await self.read_lanes()}):
                # It may be created later, so this is no reason to stop; but it may also be a typo.
                log.warning(_MISSING_LANE, name, name)
        return Lease(self._worker_id, seconds)

    async def _declare(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        await self._claims.call(calls.workers.declare_kinds(kinds))

    async def heartbeat(self, held: Collection[UUID]) -> list[AttemptNotice]:  # noqa: ARG002 - claims are answered here
        notices = await self._writes.call(calls.workers.heartbeat([self._worker_id]))
        if any(notice.notice == "lost" for notice in notices):
            raise WorkerLost(f"worker {self._worker_id} was taken for dead")
        return [AttemptNotice(notice.attempt_id, "cancel") for notice in notices if notice.attempt_id is not None]

    async def sign_off(self, fail_kinds: Sequence[str]) -> None:
        await self._writes.call(calls.workers.stop_worker(self._worker_id, list(fail_kinds)))

    # Claiming --------------------------------------------------------------------------------------------------------

    async def read_lanes(self) -> list[LaneForWorker]:
        return await self._claims.call(calls.lanes.worker_lanes(self._lanes, self._worker_id))

    async def rate_pauses(self, lanes: Sequence[str]) -> Mapping[str, float]:
        return await self._claims.call(calls.lanes.rate_pauses(list(lanes)))

    async def claim(self, request: ClaimRequest) -> list[Attempt]:
        claim = calls.attempts.claim_jobs(
            self._worker_id,
            request.lane,
            request.limit,
            request_id=request.request_id,
            wait_seconds=request.wait_seconds,
            alone=request.alone,
            floors=request.floors,
            kinds=None if request.kinds is None else list(request.kinds),
        )
        return await self._claimed(request.lane, claim)

    async def _claimed(self, lane: str, claim: Call[list[Row]]) -> list[Attempt]:
        rows = await self._claims.try_call(claim)
        if None in map(itemgetter(calls.attempts.ARGS_COLUMN), rows):
            rows = await self._claims.call(calls.attempts.whole_claim(claim))
        return [Attempt(lane, *row) for row in rows]

    # Attempts --------------------------------------------------------------------------------------------------------

    async def start(self, attempts: Sequence[Attempt], ran_seconds: Sequence[float]) -> list[UUID]:
        stale = await self._writes.call(calls.attempts.start_attempts(*_ids(attempts), list(ran_seconds)))
        return [attempt_id for _job_id, attempt_id in stale]

    async def check(self, attempts: Sequence[Attempt]) -> list[AttemptNotice]:
        return [AttemptNotice(*row) for row in await self._writes.call(calls.attempts.check_attempts(*_ids(attempts)))]

    async def report(self, reports: Sequence[tuple[Attempt, Report]], *, patient: bool = True) -> list[UUID]:
        call = calls.attempts.report_attempts(
            *_ids([attempt for attempt, _report in reports]),
            [report.lines or None for _attempt, report in reports],
            [report.progress for _attempt, report in reports],
        )
        try:
            stale = await (self._writes.call(call) if patient else self._writes.try_call(call))
        except RefusedError as error:
            if len(reports) == 1:
                log.warning("job %s: lines of its log are lost: %s", reports[0][0].id, error)
                return []
            # One of them cannot be stored; the others must not suffer for it.
            return [stale for one in reports for stale in await self.report([one], patient=patient)]
        except ConnectionLost as error:
            log.warning("lines of the logs of %s jobs may be lost: %s", len(reports), error)
            return []
        await self._note_refused([attempt for attempt, _report in reports if attempt.attempt_id in stale], "log")
        return stale

    async def finish(self, endings: Sequence[Ending]) -> Mapping[UUID, Verdict]:
        rows = await self._writes.try_call(calls.attempts.finish_attempts(columns_of(endings)))
        verdicts: dict[UUID, Verdict] = dict(rows)
        if verdicts:
            stale = [ending.attempt for ending in endings if verdicts.get(ending.attempt.attempt_id) == "stale"]
            await self._note_refused(stale, "finish")
        return verdicts

    async def _note_refused(self, attempts: Sequence[Attempt], write: str) -> None:
        """For the jobs' timelines. Nothing depends on it, so it is tried once."""
        if attempts:
            with contextlib.suppress(ConnectionLost, DatabaseBusy, RefusedError):
                await self._writes.try_call(calls.attempts.note_refused_writes(*_ids(attempts), write))

    async def crash(self, ending: Ending) -> Verdict:
        job_id, attempt_id = ending.attempt.job_id, ending.attempt.attempt_id
        crash = calls.attempts.crash_attempt(job_id, attempt_id, ending.error)
        return cast("Verdict", await self._writes.try_call(crash))

    async def find_ends(self, endings: Sequence[Ending]) -> Mapping[UUID, AttemptEnd]:
        ends = await self._writes.call(calls.attempts.attempt_ends(*_ids([ending.attempt for ending in endings])))
        return {end.attempt_id: end for end in ends}

    async def find_in_use(self, attempts: Sequence[Attempt]) -> set[UUID]:
        return await self._writes.call(calls.attempts.attempts_in_use(*_ids(attempts)))


class PostgresDelivery(SqlDelivery):
    leases: Literal["postgres", "http"] = "postgres"
    wants_heartbeats = False
    #: The backend whose messages it receives.
    backend_name: str | None = None

    def __init__(self, app: App, *, transactions: int = 1, owns_app: bool = False) -> None:
        """`transactions`: how many transactions handlers may have at a time. `owns_app`: only handlers use the app in
        this process, so its connections count as the worker's.
        """
        self._app = app
        database = self._database = app_parts(app).database()
        outage = Outage("database", log)
        self._claiming = ReconnectingConnection(
            "claim", database.connect, settings=CLAIM_LIMITS, codec=app_parts(app).codec, outage=outage
        )
        self._writing = ReconnectingConnection(
            "finish", database.connect, settings=FINISH_LIMITS, codec=app_parts(app).codec, outage=outage
        )
        super().__init__(self._claiming, self._writing)
        if owns_app:
            database.share(transactions, self._writing.call)
            app_parts(app).sync_database().lend(asyncio.get_running_loop(), database)
        else:
            database.limit_transactions(transactions)
        self._listener: Listener | None = None

    @property
    def where(self) -> str:
        return self._database.where

    async def environment(self) -> Mapping[str, str]:
        return {"FENCELINE_DSN": await self._app.dsn()}

    async def register(self, worker: WorkerRecord) -> Lease:
        lease = await super().register(worker)
        deliveries = await self._claims.call(calls.messages.lane_deliveries())
        for lane, name in deliveries.items():
            if name != self.backend_name and (self._lanes is None or lane in self._lanes):
                do = f"set {URL_VARIABLE}" if name == "arq" else f"start it with an app whose delivery is {name}"
                log.warning(_OTHER_DELIVERY, lane, name, do)
        return lease

    async def sign_off(self, fail_kinds: Sequence[str]) -> None:
        """On a connection of its own: handlers that still run may keep the others busy."""
        goodbye = ReconnectingConnection("goodbye", self._database.connect)
        try:
            await goodbye.call(calls.workers.stop_worker(self._worker_id, list(fail_kinds)))
        finally:
            goodbye.close()

    async def listen(self, notices: Notices) -> None:
        def cancelled(payload: str) -> None:
            worker, _, attempt = payload.partition("/")
            if worker == str(self._worker_id):
                with contextlib.suppress(ValueError):
                    notices.cancelled(UUID(attempt))

        self._listener = Listener(
            self._listening_connection,
            {
                "fenceline_ready": notices.wake,
                "fenceline_cancel": cancelled,
                "fenceline_lock": self.api.hear_lock,
                "fenceline_ended": self._database.on_ended,
            },
            on_connect=lambda: notices.wake(None),
            send=self._writes.call,
            turn=self._claiming.turn,
        )
        await self._listener.run()

    async def _listening_connection(self) -> "Connection":
        connection = await self._claiming.connection()
        # Behind a pooler, a claim's session now and then gets notifications that another session asked for. That cannot
        # be relied on; on a connection of its own the listener finds out whether notifications come through at all.
        return await self._database.connect() if self._database.is_pooled else connection

    @property
    def is_deaf(self) -> bool:
        return self._listener is None or self._listener.deaf

    async def close(self) -> None:
        self._claiming.retire()
        self._writing.retire()


def _ids(attempts: Sequence[Attempt]) -> tuple[list[int], list[UUID]]:
    return [attempt.job_id for attempt in attempts], [attempt.attempt_id for attempt in attempts]
