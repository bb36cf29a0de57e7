"""The program of a process for isolated handlers: `python -m fenceline.worker.isolated_main APP CHANNEL`.

It runs one attempt at a time, in the main thread, as some libraries require. A second thread reads the worker's
messages, so that a request to stop arrives while a blocking handler runs. Messages are JSON lines.

From the worker: {"settings", "worker", "has_database"} once, then {"run": attempt, "memory_limit_mb"}, {"cancel"}
(the handler is asked to stop), {"shutting_down"}, {"stop"} (its task is cancelled, if it is async), {"answer": number,
"value" or "refused" or "failed"} and {"bye"}. To the worker: {"ready"}, {"line": [message, level, fields]},
{"progress"}, {"ending"} (whether a transaction of the handler's is about to end the attempt), {"ask": number,
"operation", "values"}, and for each run {"ended": how, "reusable"} or {"stopped"}.
"""

import asyncio
import contextlib
import contextvars
import itertools
import logging
import os
import sys
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar
from uuid import UUID

from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.client.application import load_app
from fenceline.client.finalizer import Finalizer
from fenceline.context import preparation
from fenceline.context.attempt import Attempt, Ending, Report
from fenceline.context.context import Context
from fenceline.context.endings import ending_with
from fenceline.context.failure import describe, ending_of
from fenceline.context.log_lines import MAX_MESSAGE, bounded_fields, current_session, job_logging
from fenceline.context.session import Session
from fenceline.context.sync_context import SyncContext
from fenceline.context.transaction import Transaction
from fenceline.engine.handler_plan import HandlerPlan, plans_of
from fenceline.errors import Cancelled, ConnectionLost
from fenceline.errors.sqlstates import refused_as
from fenceline.model.outcome import Outcome
from fenceline.model.worker_settings import WorkerSettings
from fenceline.worker.lifespan import StartupFailed, lifespan
from fenceline.worker.own_process import configure_worker_logging, die_with_parent, end, ignore_signals, new_event_loop
from fenceline.worker.process_channel import BlockingChannel

T = TypeVar("T")

log = logging.getLogger("fenceline.worker")


class ChannelAttemptApi:
    """Passes every call on to the worker. Any thread may call; the thread that reads the channel sets the results."""

    def __init__(self, channel: BlockingChannel, *, has_database: bool) -> None:
        self.has_database = has_database
        self._channel = channel
        self._numbers = itertools.count()
        self._asked: dict[int, Future[Any]] = {}

    async def execute(self, _job_id: int, _attempt_id: UUID, operation: str, values: dict[str, Any]) -> Any:
        return await self._pass_on(operation, values)

    async def report(self, _job_id: int, _attempt_id: UUID, _report: Report) -> None:
        await self._pass_on("flush", {})  # the worker already has the lines

    async def wait_for_turn(self, block: str, seconds: float) -> None:
        await self._pass_on("wait_for_turn", {"block": block, "seconds": seconds})

    async def _pass_on(self, operation: str, values: dict[str, Any]) -> Any:
        number = next(self._numbers)
        future = self._asked[number] = Future()
        self._channel.send(ask=number, operation=operation, values=values)
        return await asyncio.wrap_future(future)

    def on_answer(self, message: Mapping[str, Any]) -> None:
        """The worker answers a call."""
        future = self._asked.pop(message["answer"])
        if future.cancelled():
            return
        if "refused" in message:
            future.set_exception(refused_as(**message["refused"]))
        elif "failed" in message:
            future.set_exception(ConnectionLost(message["failed"]))
        else:
            future.set_result(message["value"])


class IsolatedSession(Session):
    """A session that sends lines and progress to the worker at once; the worker writes them when it reports."""

    __slots__ = ("_channel",)

    def __init__(self, attempt: Attempt, channel: BlockingChannel, api: ChannelAttemptApi, app: App) -> None:
        super().__init__(attempt, api, app)
        self._channel = channel

    def add_line(self, message: str, level: str, fields: Mapping[str, Any] | None) -> None:
        if self.redactor is not None:
            message, fields = self.redactor.in_line(message, fields)
        self._channel.send(line=[message[:MAX_MESSAGE], level, bounded_fields(fields) if fields else None])

    def keep_progress(self, progress: dict[str, Any] | None) -> None:
        self._channel.send(progress=progress)

    def set_ending(self, *, is_ending: bool) -> None:
        self._channel.send(ending=is_ending)

    @property
    def has_report(self) -> bool:
        return True  # the worker may have lines to write


class Program:
    def __init__(self, app: App, channel: BlockingChannel, *, has_database: bool) -> None:
        self._channel = channel
        self._api = ChannelAttemptApi(channel, has_database=has_database)
        self._plans = plans_of(app)
        self._app = app
        self._jobs: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._session: IsolatedSession | None = None
        self._task: asyncio.Task[Any] | None = None
        self._baseline = 0

    def run(self) -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner, job_logging():
            life = lifespan(self._app)
            runner.run(life.__aenter__())
            self._baseline = address_space()
            threading.Thread(target=self._listen, name="fenceline-channel", daemon=True).start()
            self._channel.send(ready=True)
            while (message := self._jobs.get()) is not None:
                self._run_job(runner, Attempt.from_json(message["run"]), message["memory_limit_mb"])
            runner.run(life.__aexit__(None, None, None))

    def _listen(self) -> None:
        while (message := self._channel.receive()) is not None:
            if "run" in message:
                attempt = Attempt.from_json(message["run"])
                self._session = IsolatedSession(attempt, self._channel, self._api, self._app)
                self._jobs.put(message)
            elif "bye" in message:
                self._jobs.put(None)
            elif "answer" in message:
                self._api.on_answer(message)
            elif "shutting_down" in message:
                if self._session is not None:
                    self._session.shutting_down = True
            elif self._session is not None:
                self._session.request_cancel()
                task = self._task
                if "stop" in message and task is not None:
                    task.get_loop().call_soon_threadsafe(task.cancel)
        if not self._jobs.empty() or self._session is not None:
            os._exit(1)  # the worker is gone, so nobody wants the result
        self._jobs.put(None)

    def _run_job(self, runner: asyncio.Runner, attempt: Attempt, memory_limit_mb: int | None) -> None:
        session, plan = self._session, self._plans[attempt.kind]
        assert session is not None  # noqa: S101 - set before the job was queued
        reusable = True
        token = current_session.set(session)
        limit_memory(memory_limit_mb, self._baseline)
        try:
            runner.run(preparation.prepare(session, plan.handler, takes_context=plan.takes_context))
            if plan.is_async or plan.has_middleware:
                value = runner.run(self._on_loop(plan, attempt, session), context=contextvars.copy_context())
            else:
                value = plan.call_blocking(attempt, SyncContext(session, self._wait))
            if plan.finalizer is not None and session.transaction_done is None and self._api.has_database:
                self._finalize(runner, plan.finalizer, session, value)
            ending: Ending | None = ending_with(attempt, session, value, plan.encode_result)
        except MemoryError as error:
            limit_memory(None, self._baseline)
            reusable = memory_limit_mb is None  # memory that is not freed would count against the next job
            ending = Ending(attempt, outcome=Outcome.FAILED, error=describe(error, code="memory_limit"))
        except (Cancelled, asyncio.CancelledError) as error:
            stopped = session.cancelled or (session.shutting_down and isinstance(error, Cancelled))
            ending = None if stopped else ending_of(attempt, error)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its job's failure, `exit()` too
            ending = ending_of(attempt, error)
        finally:
            limit_memory(None, self._baseline)
            current_session.reset(token)
            self._session = self._task = None
        if session.transaction_done is not None:  # whatever came after it
            ending = Ending(attempt, outcome=session.transaction_done, is_written=True)
        if ending is None:
            self._channel.send(stopped=True)
        else:
            ended = ending._replace(error=session.redact(ending.error))
            self._channel.send(ended=ended.to_json(), reusable=reusable)

    async def _on_loop(self, plan: HandlerPlan, attempt: Attempt, session: Session) -> Any:
        self._task = asyncio.current_task()
        context = Context(session)

        async def handle() -> Any:
            if plan.is_async:
                return await plan.call(attempt, context)
            return plan.call_blocking(attempt, SyncContext(session, self._wait))

        return await plan.around(context, handle)

    def _finalize(self, runner: asyncio.Runner, finalizer: Finalizer, session: Session, value: Any) -> None:
        """In this thread, where the handler ran."""
        transaction = Transaction(session, Context(session))
        if finalizer.is_async:
            runner.run(transaction.finish_with(value, SyncContext, self._wait))
        else:
            transaction.finish_blocking(value, SyncContext(session, self._wait), self._wait)

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """For a blocking handler: run on the loop of `app.sync`, because this thread's loop is not running."""
        return app_parts(self._app).sync_database().run(lambda _database: coroutine)


def address_space() -> int:
    """Bytes of address space in use; 0 where that is unknown."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    return 0


def limit_memory(megabytes: int | None, baseline: int) -> None:
    """Limit how much the process may grow beyond its size before the first job; None: no limit."""
    import resource  # noqa: PLC0415 - there is none on Windows

    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = hard if megabytes is None else baseline + megabytes * 2**20
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def main() -> None:
    die_with_parent()
    ignore_signals()
    channel = BlockingChannel(int(sys.argv[2]))
    hello = channel.receive()
    if hello is None:
        return
    configure_worker_logging(WorkerSettings.from_json(hello["settings"]), hello["worker"])
    try:
        app = load_app(sys.argv[1])
        app_parts(app).pool_size = 1  # three connections: for calls, for transactions, and to wait for jobs
        Program(app, channel, has_database=hello["has_database"]).run()
    except StartupFailed as error:
        log.error("%s", error, exc_info=error.__cause__)  # noqa: TRY400 - the cause
        end(1)
    end(0)


if __name__ == "__main__":
    main()
