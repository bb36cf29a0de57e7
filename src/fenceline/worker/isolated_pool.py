"""Processes for handlers that may have to be killed: `@app.job(isolated=True)`.

Each process runs one attempt at a time (`isolated_main` is its program). It is started when it is first needed, used
again, and replaced after it was killed, died, or ran out of memory.
"""

import asyncio
import contextlib
import logging
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from typing import TYPE_CHECKING, Any, Literal

from fenceline.context.attempt import Attempt, Ending
from fenceline.errors import Cancelled, FencelineError, RefusedError, StaleAttempt
from fenceline.model.json_text import stored_json
from fenceline.model.outcome import Outcome
from fenceline.model.worker_settings import WorkerSettings
from fenceline.worker.process_channel import ProcessChannel, start_with_channel

if TYPE_CHECKING:
    from fenceline.context.session import Session
    from fenceline.engine.running_attempt import RunningAttempt

log = logging.getLogger("fenceline.worker")

#: How long a process has to import the app and run its startup hooks.
START_SECONDS = 60.0
#: How long it has to run the shutdown hooks.
RETIRE_SECONDS = 1.0
#: How long a process that ran a suspect is kept for another one.
SUSPECTS_SECONDS = 30.0
#: How long to read what a process sent before it ended.
LAST_WORDS_SECONDS = 1.0


class IsolatedNotStarted(FencelineError):
    """The process for isolated handlers ended before it was ready."""


class IsolatedProcess:
    def __init__(self, process: Process, channel: ProcessChannel) -> None:
        self._process = process
        self._channel = channel
        self.watch = asyncio.create_task(self._watch_process())
        self.reusable = True
        self._asked: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(cls, app_name: str, hello: dict[str, Any], living: "set[IsolatedProcess]") -> "IsolatedProcess":
        """Start one and wait until it is ready; it is in `living` until it has ended. Raises IsolatedNotStarted."""
        channel, process = await start_with_channel(
            "fenceline.worker.isolated_main", lambda end: (app_name, end), stdin=DEVNULL
        )
        isolated = cls(process, channel)
        living.add(isolated)
        isolated.watch.add_done_callback(lambda _watch: living.discard(isolated))
        try:
            isolated._channel.send(**hello)
            async with asyncio.timeout(START_SECONDS):
                ready = await isolated._channel.receive()
        except BaseException as error:
            isolated.kill()
            if isinstance(error, TimeoutError):
                raise IsolatedNotStarted(
                    f"the process for isolated handlers took over {START_SECONDS} seconds"
                ) from error
            raise
        if ready is None:
            code = await isolated.watch
            raise IsolatedNotStarted(f"the process for isolated handlers ended with code {code} before it was ready")
        return isolated

    async def run(self, attempt: Attempt, session: "Session", memory_limit_mb: int | None) -> Ending:
        """Run an attempt; a process that dies ends it as `crashed`. Raises Cancelled when the handler was stopped."""
        self._channel.send(run=attempt.to_json(), memory_limit_mb=memory_limit_mb)
        # Only now is there a session in the process to be told what came before.
        if session.shutting_down:
            self.tell("shutting_down")
        if session.cancelled:
            self.tell("cancel")
        while (message := await self._channel.receive()) is not None:
            match message:
                case {"line": [text, level, fields]}:
                    session.add_line(text, level, fields)
                case {"ending": is_ending}:
                    session.set_ending(is_ending=is_ending)
                case {"progress": progress}:
                    session.keep_progress(progress)
                case {"ask": number, "operation": operation, "values": values}:
                    asked = asyncio.create_task(self._answer(session, number, operation, values))
                    self._asked.add(asked)  # a wait for a lock must not hold up the rest
                    asked.add_done_callback(self._asked.discard)
                case {"stopped": True}:
                    raise Cancelled("the job was asked to stop")
                case {"ended": ended, "reusable": reusable}:
                    self.reusable = reusable
                    return Ending.from_json(attempt, ended)
        self.reusable = False
        return Ending(attempt, outcome=Outcome.CRASHED, error=stored_json(_death(await self.watch)))

    async def _answer(self, session: "Session", number: int, operation: str, values: dict[str, Any]) -> None:
        """Carry out a call of the handler's context."""
        try:
            value = await carry_out(session, operation, values)
        except RefusedError as error:
            refused = {"code": error.code, "message": str(error), "detail": error.detail}
            self._channel.send(answer=number, refused=refused)
        except Exception as error:  # noqa: BLE001 - the handler would wait for ever without an answer
            self._channel.send(answer=number, failed=f"{type(error).__name__}: {error}")
        else:
            self._channel.send(answer=number, value=value)

    def tell(self, what: Literal["shutting_down", "cancel", "stop"]) -> None:
        self._channel.send(**{what: True})

    def kill(self) -> None:
        """Kill the process and all that it has started."""
        self._kill_group()
        self._channel.close()

    def hang_up(self) -> None:
        self._channel.close()

    def _kill_group(self) -> None:
        self.reusable = False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def retire(self) -> None:
        """Let it run its shutdown hooks and end."""
        self._channel.send(bye=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RETIRE_SECONDS):
                await asyncio.shield(self.watch)

    async def _watch_process(self) -> int:
        """Wait for its exit code, not for the end of the channel: a process that it forked may hold that open."""
        try:
            code = await self._process.wait()
        except asyncio.CancelledError:  # the loop ends, and must not leave the process behind
            self._kill_group()
            await self._process.wait()
            raise
        self._kill_group()  # what it left behind
        asyncio.get_running_loop().call_later(LAST_WORDS_SECONDS, self._channel.close)
        return code


async def carry_out(session: "Session", operation: str, values: dict[str, Any]) -> Any:
    api = session.api
    match operation:
        case "wait_for_turn":
            return await api.wait_for_turn(**values)
        case "flush":
            return await session.flush()
        case "set_progress":
            session.keep_progress(None)  # older than this
    try:
        return await api.execute(session.attempt.job_id, session.attempt.attempt_id, operation, values)
    except StaleAttempt:
        await session.tell_stale()
        raise


class IsolatedPool:
    def __init__(self, app_name: str, settings: WorkerSettings, *, has_database: bool) -> None:
        self._app_name = app_name
        self._has_database = has_database
        self._settings = settings
        self._processes: set[IsolatedProcess] = set()  # all that have not ended
        self._idle: list[IsolatedProcess] = []
        self._retiring: set[asyncio.Task[None]] = set()
        self.worker_id = 0

    async def run(self, running: "RunningAttempt") -> Ending:
        """Run an attempt in a process, which is killed if this is cancelled (a timeout, a lost attempt)."""
        isolated = self._take() or await self._start()
        try:
            await running.begin()
            running.process = isolated
            ending = await isolated.run(running.attempt, running.session, running.plan.memory_limit_mb)
        except Cancelled:
            raise
        except BaseException:
            isolated.kill()
            raise
        finally:
            running.process = None
            if isolated.reusable:
                self._idle.append(isolated)
                if running.attempt.alone:
                    # Suspects are rare: their process is kept for the next ones, but not for ever.
                    asyncio.get_running_loop().call_later(SUSPECTS_SECONDS, self._let_go, isolated)
            else:
                isolated.hang_up()
        return ending

    def _let_go(self, isolated: IsolatedProcess) -> None:
        if isolated in self._idle:
            self._idle.remove(isolated)
            retiring = asyncio.create_task(self._retire([isolated]))
            self._retiring.add(retiring)
            retiring.add_done_callback(self._retiring.discard)

    async def retire(self) -> None:
        if self._idle:
            processes, self._idle = self._idle, []
            await self._retire(processes)

    async def _retire(self, processes: list[IsolatedProcess]) -> None:
        await asyncio.gather(*(isolated.retire() for isolated in processes))
        for isolated in processes:
            isolated.kill()

    async def close(self) -> None:
        """Kill those that are left, and wait for their end."""
        for isolated in self._processes:
            isolated.kill()
        while self._processes:
            await asyncio.wait({isolated.watch for isolated in self._processes})

    def _take(self) -> IsolatedProcess | None:
        while self._idle:
            isolated = self._idle.pop()
            if isolated.reusable:  # it may have died meanwhile
                return isolated
        return None

    async def _start(self) -> IsolatedProcess:
        hello = {"settings": self._settings.to_json(), "worker": self.worker_id, "has_database": self._has_database}
        return await IsolatedProcess.start(self._app_name, hello, self._processes)


def _death(exit_code: int) -> dict[str, Any]:
    if exit_code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-exit_code).name
            return {"message": f"the job's process was killed by {name}", "signal": -exit_code}
    return {"message": f"the job's process exited with code {exit_code}", "exit_code": exit_code}
