"""The program of a process for isolated handlers: `python -m fenceline.worker.isolated APP LINK`.

One attempt at a time, in the main thread, as some libraries want it. A second thread hears what the worker has to say,
so that a request to stop arrives while a blocking handler runs. Messages are JSON lines.

From the worker: {"log_format", "worker", "has_database"} once, then {"run": attempt, "memory_limit_mb"}, {"cancel"}
(the handler is asked to stop), {"shutting_down"}, {"stop"} (its task is cancelled, if it is async), {"answer": number,
"value" or "refused" or "failed"} and {"bye"}. To the worker: {"ready"}, {"line": [message, level, fields]},
{"progress"}, {"ending"} (whether a transaction of the handler's is about to end the attempt), {"ask": number,
"operation", "values"}, and for each run {"ended": how, "reusable"} or {"stopped"}.
"""

import asyncio
import contextlib
import contextvars
import itertools
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar
from uuid import UUID

from fenceline.client.app import Fenceline
from fenceline.context import preparation
from fenceline.context.attempt import Attempt, Ending, Report
from fenceline.context.context import Context
from fenceline.context.endings import ending_with
from fenceline.context.failure import describe, ending_of
from fenceline.context.lines import MAX_MESSAGE, bounded_fields, current_context, job_logging
from fenceline.context.sync_context import SyncContext
from fenceline.context.transaction import Transaction
from fenceline.errors import Cancelled, ConnectionLost, refused_as
from fenceline.model.json_text import stored_json
from fenceline.worker.application import load_app
from fenceline.worker.hooks import StartupFailed, lifespan
from fenceline.worker.logs import configure_logging
from fenceline.worker.output import redact_output
from fenceline.worker.parent import die_with_parent
from fenceline.worker.plan import Plan
from fenceline.worker.tracing import all_middlewares

T = TypeVar("T")

log = logging.getLogger("fenceline.worker")


class Talk:
    """This side's end of the link."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)
        self._lines = self._socket.makefile("rb")
        self._turn = threading.Lock()

    def say(self, **message: Any) -> None:
        with self._turn:
            self._socket.sendall(stored_json(message).encode() + b"\n")

    def hear(self) -> dict[str, Any] | None:
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            return None
        message: dict[str, Any] = json.loads(line)
        return message


class TalkDesk:
    """A desk that passes everything on to the worker. Any thread may ask; the one that hears gives the answers."""

    def __init__(self, talk: Talk, *, has_database: bool) -> None:
        self.has_database = has_database
        self._talk = talk
        self._numbers = itertools.count()
        self._asked: dict[int, Future[Any]] = {}

    async def ask(self, _job_id: int, _attempt_id: UUID, operation: str, values: dict[str, Any]) -> Any:
        return await self._pass_on(operation, values)

    async def start_json(self, _job_id: int) -> dict[str, Any]:
        start: dict[str, Any] = await self._pass_on("start", {})
        return start

    async def snapshot_hash(self, snapshot: str) -> str:
        return str(await self._pass_on("snapshot_hash", {"snapshot": snapshot}))

    async def report(self, _job_id: int, _attempt_id: UUID, _report: Report) -> None:
        await self._pass_on("flush", {})  # the worker has it all

    async def woken(self, block: str, seconds: float) -> None:
        await self._pass_on("woken", {"block": block, "seconds": seconds})

    async def _pass_on(self, operation: str, values: dict[str, Any]) -> Any:
        number = next(self._numbers)
        future = self._asked[number] = Future()
        self._talk.say(ask=number, operation=operation, values=values)
        return await asyncio.wrap_future(future)

    def hear(self, message: Mapping[str, Any]) -> None:
        """An answer of the worker's."""
        future = self._asked.pop(message["answer"])
        if future.cancelled():
            return
        if "refused" in message:
            future.set_exception(refused_as(**message["refused"]))
        elif "failed" in message:
            future.set_exception(ConnectionLost(message["failed"]))
        else:
            future.set_result(message["value"])


class IsolatedContext(Context):
    """A context whose lines and progress go to the worker at once, which writes them in its time."""

    __slots__ = ("_talk",)

    def __init__(self, attempt: Attempt, talk: Talk, desk: TalkDesk, app: Fenceline) -> None:
        super().__init__(attempt, desk, app)
        self._talk = talk

    def add_line(self, message: str, level: str, fields: Mapping[str, Any] | None) -> None:
        if self.redactor is not None:
            message, fields = self.redactor.in_line(message, fields)
        self._talk.say(line=[message[:MAX_MESSAGE], level, bounded_fields(fields) if fields else None])

    def keep_progress(self, progress: dict[str, Any] | None) -> None:
        self._talk.say(progress=progress)

    def set_ending(self, *, is_ending: bool) -> None:
        self._talk.say(ending=is_ending)

    @property
    def has_report(self) -> bool:
        return True  # the worker may have lines to write


class Program:
    def __init__(self, app: Fenceline, talk: Talk, *, has_database: bool) -> None:
        self._talk = talk
        self._desk = TalkDesk(talk, has_database=has_database)
        middlewares = all_middlewares(app)
        self._plans = {kind: Plan(handler, middlewares) for kind, handler in app.handlers.items()}
        self._app = app
        self._jobs: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._context: IsolatedContext | None = None
        self._task: asyncio.Task[Any] | None = None
        self._baseline = 0

    def run(self) -> None:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner, job_logging():
            life = lifespan(self._app)
            runner.run(life.__aenter__())
            self._baseline = address_space()
            threading.Thread(target=self._listen, name="fenceline-link", daemon=True).start()
            self._talk.say(ready=True)
            while (message := self._jobs.get()) is not None:
                self._run_job(runner, Attempt.from_json(message["run"]), message["memory_limit_mb"])
            runner.run(life.__aexit__(None, None, None))

    def _listen(self) -> None:
        while (message := self._talk.hear()) is not None:
            if "run" in message:
                attempt = Attempt.from_json(message["run"])
                self._context = IsolatedContext(attempt, self._talk, self._desk, self._app)
                self._jobs.put(message)
            elif "bye" in message:
                self._jobs.put(None)
            elif "answer" in message:
                self._desk.hear(message)
            elif "shutting_down" in message:
                if self._context is not None:
                    self._context.shutting_down = True
            elif self._context is not None:
                self._context.request_cancel()
                task = self._task
                if "stop" in message and task is not None:
                    task.get_loop().call_soon_threadsafe(task.cancel)
        if not self._jobs.empty() or self._context is not None:
            os._exit(1)  # the worker is gone, and with it whoever wants the result
        self._jobs.put(None)

    def _run_job(self, runner: asyncio.Runner, attempt: Attempt, memory_limit_mb: int | None) -> None:
        context, plan = self._context, self._plans[attempt.kind]
        assert context is not None  # noqa: S101 - set before the job was queued
        reusable = True
        token = current_context.set(context)
        limit_memory(memory_limit_mb, self._baseline)
        try:
            runner.run(preparation.prepare(context, plan.handler, takes_context=plan.takes_context))
            if plan.is_async or plan.has_middleware:
                value = runner.run(self._on_loop(plan, attempt, context), context=contextvars.copy_context())
            else:
                value = plan.call_blocking(attempt, SyncContext(context, self._wait))
            if plan.finalizer is not None and context.transaction_done is None and self._desk.has_database:
                self._finalize(runner, plan, context, value)
            ending: Ending | None = ending_with(attempt, context, value, plan.encode_result)
        except MemoryError as error:
            limit_memory(None, self._baseline)
            reusable = memory_limit_mb is None  # what could not be freed would count against the next
            ending = Ending(attempt, outcome="failed", error=describe(error, code="memory_limit"))
        except (Cancelled, asyncio.CancelledError) as error:
            stopped = context.cancelled or (context.shutting_down and isinstance(error, Cancelled))
            ending = None if stopped else ending_of(attempt, error)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its job's failure, `exit()` too
            ending = ending_of(attempt, error)
        finally:
            limit_memory(None, self._baseline)
            current_context.reset(token)
            self._context = self._task = None
        if context.transaction_done is not None:  # whatever came after it
            ending = Ending(attempt, outcome=context.transaction_done.outcome, is_written=True)
        if ending is None:
            self._talk.say(stopped=True)
        else:
            ending.error = context.redact(ending.error)
            self._talk.say(ended=ending.to_json(), reusable=reusable)

    async def _on_loop(self, plan: Plan, attempt: Attempt, context: Context) -> Any:
        self._task = asyncio.current_task()

        async def handle() -> Any:
            if plan.is_async:
                return await plan.call(attempt, context)
            return plan.call_blocking(attempt, SyncContext(context, self._wait))

        return await plan.around(context, handle)

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """For a blocking handler: on the loop of the app's blocking side, because this thread's is not running."""
        return self._app.sync.caller().run(lambda _caller: coroutine)

    def _finalize(self, runner: asyncio.Runner, plan: Plan, context: Context, value: Any) -> None:
        transaction = Transaction(context)

        async def finalize() -> None:
            async with transaction.open() as own:
                own.result = value

        if plan.finalizer is not None and plan.finalizer.is_async:
            runner.run(finalize())
        else:
            with transaction.open_blocking(SyncContext(context, self._wait)) as own:
                own.result = value


def address_space() -> int:
    """Bytes of address space in use; 0 where that cannot be told."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    return 0


def limit_memory(megabytes: int | None, baseline: int) -> None:
    """Limit what the process may take beyond what it took before its first job; None: no limit."""
    import resource  # noqa: PLC0415 - there is none on Windows

    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = hard if megabytes is None else baseline + megabytes * 2**20
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _loop_factory() -> Any:
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - where it is installed

        return uvloop.new_event_loop
    return None


def main() -> None:
    die_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the worker decides
    talk = Talk(int(sys.argv[2]))
    hello = talk.hear()
    if hello is None:
        return
    redact_output()
    configure_logging(hello["log_format"], worker=hello["worker"])
    try:
        Program(load_app(sys.argv[1]), talk, has_database=hello["has_database"]).run()
    except StartupFailed as error:
        log.error("%s", error, exc_info=error.__cause__)  # noqa: TRY400 - the cause
        os._exit(1)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a thread that a handler left behind must not keep the process


if __name__ == "__main__":
    main()
