"""Lets your arq worker run the jobs of a Fenceline app beside your own arq functions.

    part = ArqPart(app)

    class WorkerSettings:
        functions = [my_own_function, part.function]
        on_startup = part.startup
        on_shutdown = part.shutdown
        queue_name = part.queue_name("mail")  # the lane's
        redis_settings = part.redis_settings

An arq worker reads one queue, so it serves one lane; with `FENCELINE_ARQ_QUEUE=arq:queue` all lanes share the queue of
your own jobs.
"""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fenceline.backends.arq import FUNCTION, ArqBackend
from fenceline.backends.contract import Backend
from fenceline.client.app import App
from fenceline.context.attempt import Attempt, Ending
from fenceline.database import calls
from fenceline.delivery.contract import ClaimRequest, Lease, Notices, Verdict, WorkerRecord
from fenceline.delivery.messages import MessageDelivery
from fenceline.model.public_id import parse_id
from fenceline.model.worker_settings import WorkerSettings
from fenceline.worker.in_process import InProcessWorker, prepare

if TYPE_CHECKING:
    from arq.connections import RedisSettings
    from arq.worker import Function

log = logging.getLogger("fenceline.worker")

#: Jobs have timeouts of their own, so arq's must not apply.
FOR_EVER_SECONDS = 10 * 365 * 86_400

#: By then a database that answers has said whether the jobs can run here.
START_SECONDS = 5.0

#: How often a call asks whether its attempt still exists: one that was taken away is never finished here.
CHECK_SECONDS = 5.0


class ArqPart:
    def __init__(
        self,
        app: App,
        *,
        url: str | None = None,
        settings: WorkerSettings | None = None,
        import_name: str | None = None,
    ) -> None:
        """`url`: else `$FENCELINE_REDIS_URL`. `import_name`: where a new process finds the app ("module:app"), for
        isolated handlers. Raises BackendMisconfigured.
        """
        self._app = app
        self._backend = ArqBackend(url)
        self._worker = InProcessWorker(app, settings or WorkerSettings(), self._connect, import_name=import_name)
        self._delivery: CalledDelivery | None = None  # of the last registration
        self._registered = asyncio.Event()
        self._working: asyncio.Task[None] | None = None

    @property
    def function(self) -> "Function":
        """What arq calls with the id of a job."""
        from arq.worker import func

        return func(self._run, name=FUNCTION, timeout=FOR_EVER_SECONDS, keep_result=0)  # type: ignore[arg-type]  # its protocol has a __qualname__

    @property
    def redis_settings(self) -> "RedisSettings":
        from arq.connections import RedisSettings

        return RedisSettings.from_dsn(self._backend.url)

    def queue_name(self, lane: str) -> str:
        return self._backend.queue_name(lane)

    async def startup(self, ctx: dict[Any, Any]) -> None:  # noqa: ARG002 - as arq calls it
        """Raises what keeps the jobs from running here, so that arq ends too. A database that is away does not: arq
        starts with its own functions, and the jobs follow.
        """
        working = self._working = asyncio.create_task(self._work())
        registered = asyncio.create_task(self._registered.wait())
        await asyncio.wait({working, registered}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        registered.cancel()
        if working.done():
            await working
        working.add_done_callback(_log_failure)

    async def shutdown(self, ctx: dict[Any, Any]) -> None:  # noqa: ARG002 - as above
        self._worker.stop()
        if self._working is not None:
            if not self._registered.is_set():
                self._working.cancel()
            await asyncio.wait({self._working})

    async def _work(self) -> None:
        await prepare(self._app)
        await self._worker.run()

    async def _run(self, _ctx: dict[Any, Any], job_id: str) -> None:
        if self._delivery is not None:  # else the worker is about to register, and the message will come again
            await self._delivery.run_named(parse_id(job_id))

    def _connect(self) -> "CalledDelivery":
        self._delivery = CalledDelivery(self._app, ArqBackend(self._backend.url), self._registered)
        return self._delivery


def _log_failure(working: "asyncio.Task[None]") -> None:
    if not working.cancelled() and (error := working.exception()) is not None:
        log.error("jobs are no longer run here: %s", error, exc_info=error)


class CalledDelivery(MessageDelivery):
    """Jobs that arq's worker calls us for: each call names one, which is claimed here and run by the engine.

    The call returns when the job has ended, so that arq's `max_jobs` holds. What arq makes of it decides nothing.
    """

    def __init__(self, app: App, backend: Backend, registered: asyncio.Event) -> None:
        super().__init__(app, backend)
        self._registered = registered
        self._named: defaultdict[str, deque[int]] = defaultdict(deque)
        self._calls: dict[int, asyncio.Event] = {}
        self._attempts: dict[int, Attempt] = {}
        self._notices: Notices | None = None

    async def run_named(self, job_id: int) -> None:
        """Run one job; returns at once if it is claimed already, gone, or may not run now."""
        lane = await self._claims.call(calls.messages.queued_lane(job_id))
        if lane is None or job_id in self._calls:
            return
        over = self._calls[job_id] = asyncio.Event()
        self._named[lane].append(job_id)
        if self._notices is not None:
            self._notices.wake(lane)
        try:
            while not over.is_set():
                await asyncio.wait({asyncio.ensure_future(over.wait())}, timeout=CHECK_SECONDS)
                attempt = self._attempts.get(job_id)
                if attempt is not None and any(notice.notice == "stale" for notice in await self.check([attempt])):
                    return
        finally:
            self._calls.pop(job_id, None)
            self._attempts.pop(job_id, None)

    async def register(self, worker: WorkerRecord) -> Lease:
        lease = await super().register(worker)
        self._registered.set()
        return lease

    async def listen(self, notices: Notices) -> None:
        self._notices = notices
        await super().listen(notices)

    async def claim(self, request: ClaimRequest) -> list[Attempt]:
        if request.alone:
            return await super().claim(request)
        await self._send(request)
        queue = self._named[request.lane]
        named = [queue.popleft() for _ in range(min(request.limit, len(queue)))]
        attempts = await self._claim_named(request, named) if named else []
        self._attempts |= {attempt.job_id: attempt for attempt in attempts}
        self._end(set(named) - self._attempts.keys())
        return attempts

    async def finish(self, endings: Sequence[Ending]) -> Mapping[UUID, Verdict]:
        verdicts = await super().finish(endings)
        self._end({ending.attempt.job_id for ending in endings})
        return verdicts

    async def close(self) -> None:
        self._end(set(self._calls))
        await super().close()

    def _end(self, job_ids: set[int]) -> None:
        for job_id in job_ids & self._calls.keys():
            self._calls[job_id].set()
