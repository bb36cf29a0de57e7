"""Processes of their own for handlers that may have to be killed: `@app.job(isolated=True)`.

Seen from the worker: a cell is a process that runs one attempt at a time (`isolated` is its program). It is started
when it is first needed, used again, and replaced after it was killed, died, or ran out of memory.
"""

import asyncio
import contextlib
import logging
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from typing import TYPE_CHECKING, Any

from fenceline.context.attempt import Attempt, Ending
from fenceline.errors import Cancelled, FencelineError, RefusedError, StaleAttempt
from fenceline.model.json_text import stored_json
from fenceline.worker.link import Link, start_linked
from fenceline.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from fenceline.context.context import Context
    from fenceline.worker.execution import Execution

log = logging.getLogger("fenceline.worker")

#: To import the app and run its startup hooks.
START_SECONDS = 60.0
#: To run the shutdown hooks.
RETIRE_SECONDS = 1.0
#: Between the end of the process and the end of what it said.
LAST_WORDS_SECONDS = 1.0


class CellNotStarted(FencelineError):  # noqa: N818 - as the exceptions in errors.py
    """The process for isolated handlers ended before it was ready."""


class Cell:
    def __init__(self, process: Process, link: Link) -> None:
        self._process = process
        self._link = link
        self.watch = asyncio.create_task(self._watch_process())
        self.reusable = True
        self._asked: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(cls, app_name: str, hello: dict[str, Any], living: "set[Cell]") -> "Cell":
        """A cell that is ready; it is in `living` until its process has ended. Raises CellNotStarted."""
        link, process = await start_linked("fenceline.worker.isolated", lambda end: (app_name, end), stdin=DEVNULL)
        cell = cls(process, link)
        living.add(cell)
        cell.watch.add_done_callback(lambda _watch: living.discard(cell))
        try:
            cell._link.send(**hello)
            async with asyncio.timeout(START_SECONDS):
                ready = await cell._link.receive()
        except BaseException as error:
            cell.kill()
            if isinstance(error, TimeoutError):
                raise CellNotStarted(f"the process for isolated handlers took over {START_SECONDS} seconds") from error
            raise
        if ready is None:
            code = await cell.watch
            raise CellNotStarted(f"the process for isolated handlers ended with code {code} before it was ready")
        return cell

    async def run(self, attempt: Attempt, context: "Context", memory_limit_mb: int | None) -> Ending:
        """Run an attempt; a process that dies ends it as `crashed`. Raises Cancelled when the handler was stopped."""
        self._link.send(run=attempt.to_json(), memory_limit_mb=memory_limit_mb)
        while (message := await self._link.receive()) is not None:
            match message:
                case {"line": [text, level, fields]}:
                    context.add_line(text, level, fields)
                case {"ending": is_ending}:
                    context.set_ending(is_ending=is_ending)
                case {"progress": progress}:
                    context.keep_progress(progress)
                case {"ask": number, "operation": operation, "values": values}:
                    asked = asyncio.create_task(self._answer(context, number, operation, values))
                    self._asked.add(asked)  # a wait for a lock must not hold up the rest
                    asked.add_done_callback(self._asked.discard)
                case {"stopped": True}:
                    raise Cancelled("the job was asked to stop")
                case {"ended": ended, "reusable": reusable}:
                    self.reusable = reusable
                    return Ending(attempt, **ended)
        self.reusable = False
        return Ending(attempt, outcome="crashed", error=stored_json(_death(await self.watch)))

    async def _answer(self, context: "Context", number: int, operation: str, values: dict[str, Any]) -> None:
        """Carry out what the handler asks of its context over there."""
        try:
            value = await carry_out(context, operation, values)
        except RefusedError as error:
            refused = {"code": error.code, "message": str(error), "detail": error.detail}
            self._link.send(answer=number, refused=refused)
        except Exception as error:  # noqa: BLE001 - without an answer the handler would wait for ever
            self._link.send(answer=number, failed=f"{type(error).__name__}: {error}")
        else:
            self._link.send(answer=number, value=value)

    def shut_down(self) -> None:
        self._link.send(shutting_down=True)

    def ask_to_stop(self) -> None:
        self._link.send(cancel=True)

    def insist(self) -> None:
        self._link.send(stop=True)

    def kill(self) -> None:
        """End the process, and what it has started."""
        self._kill_group()
        self._link.close()

    def hang_up(self) -> None:
        """Nobody listens to it any more."""
        self._link.close()

    def _kill_group(self) -> None:
        self.reusable = False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def retire(self) -> None:
        """Let it end by itself, in good order."""
        self._link.send(bye=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RETIRE_SECONDS):
                await asyncio.shield(self.watch)

    async def _watch_process(self) -> int:
        """Its exit code. Not the end of the link: a process that it forked may hold that open."""
        code = await self._process.wait()
        self._kill_group()  # what it left behind
        asyncio.get_running_loop().call_later(LAST_WORDS_SECONDS, self._link.close)
        return code


async def carry_out(context: "Context", operation: str, values: dict[str, Any]) -> Any:
    desk = context.desk
    match operation:
        case "start":
            return await desk.start_json(context.job_id)
        case "snapshot_hash":
            return await desk.snapshot_hash(**values)
        case "woken":
            return await desk.woken(**values)
        case "flush":
            return await context.flush()
        case "set_progress":
            context.keep_progress(None)  # older than this
    try:
        return await desk.ask(context.job_id, context.attempt_id, operation, values)
    except StaleAttempt:
        await context.tell_stale()
        raise


class Isolation:
    def __init__(self, app_name: str | None, settings: WorkerSettings, *, has_database: bool) -> None:
        self._app_name = app_name
        self._has_database = has_database
        self._log_format = settings.log_format
        self._cells: set[Cell] = set()  # until their processes have ended
        self._idle: list[Cell] = []
        self.worker_id = 0

    async def run(self, execution: "Execution") -> Ending:
        """Run an attempt in a cell. Cancelled (a timeout, a lost attempt), it kills the cell."""
        cell = self._take() or await self._start()
        execution.cell = cell
        try:
            execution.begin()
            if execution.context.shutting_down:
                cell.shut_down()
            if execution.context.cancelled:
                cell.ask_to_stop()
            ending = await cell.run(execution.attempt, execution.context, execution.plan.memory_limit_mb)
        except Cancelled:
            raise
        except BaseException:
            cell.kill()
            raise
        finally:
            execution.cell = None
            if cell.reusable:
                self._idle.append(cell)
            else:
                cell.hang_up()
        if ending.outcome == "crashed":
            log.error(
                "job %s: its process died (%s)", execution.attempt.id, ending.error,
                extra={"job": execution.attempt.id, "kind": execution.attempt.kind},
            )  # fmt: skip
        return ending

    async def retire(self) -> None:
        if self._idle:
            cells, self._idle = self._idle, []
            await asyncio.gather(*(cell.retire() for cell in cells))
            for cell in cells:
                cell.kill()

    def kill(self) -> None:
        for cell in self._cells:
            cell.kill()

    async def wait_closed(self) -> None:
        """After `kill`: until the processes have ended."""
        while self._cells:
            await asyncio.wait({cell.watch for cell in self._cells})

    def _take(self) -> Cell | None:
        while self._idle:
            cell = self._idle.pop()
            if cell.reusable:  # it may have died meanwhile
                return cell
        return None

    async def _start(self) -> Cell:
        if self._app_name is None:
            raise CellNotStarted("the app's import name is not known")
        hello = {"log_format": self._log_format, "worker": self.worker_id, "has_database": self._has_database}
        return await Cell.start(self._app_name, hello, self._cells)


def _death(exit_code: int) -> dict[str, Any]:
    if exit_code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-exit_code).name
            return {"message": f"the job's process was killed by {name}", "signal": -exit_code}
    return {"message": f"the job's process exited with code {exit_code}", "exit_code": exit_code}
