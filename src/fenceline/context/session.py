"""The engine's side of an attempt at work: what its handler writes, whether it must stop, how it ends.

The engine makes a `Session` for each attempt and keeps it; the handler gets a `Context`, which shows users what they
need of it and nothing else.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fenceline.client.app_parts import app_parts
from fenceline.context.attempt import Attempt, Report, Start
from fenceline.context.failure import message_of
from fenceline.context.handler_tracing import note_line, step_span
from fenceline.context.items import Items
from fenceline.context.log_lines import Lines, job_log
from fenceline.context.redacted_output import redact_output
from fenceline.context.redaction import Credentials, Redactor, redact
from fenceline.context.steps import Step, Steps
from fenceline.errors import Cancelled, StaleAttempt, TooLarge
from fenceline.model.json_text import stored_json
from fenceline.model.outcome import Outcome

if TYPE_CHECKING:
    from fenceline.client.app import App
    from fenceline.context.attempt_api import AttemptApi

#: Progress that follows sooner than this is written with the next report.
PROGRESS_SECONDS = 0.25
#: Characters of progress, as JSON; items have the room of a result.
MAX_PROGRESS = 65_536


class Session:
    __slots__ = (
        "_items",
        "_phase",
        "_progress",
        "_progress_at",
        "_reporting",
        "_steps",
        "_told",
        "api",
        "app",
        "attempt",
        "cancelled",
        "credentials",
        "is_ending",
        "lines",
        "on_stale",
        "redactor",
        "shutting_down",
        "start",
        "transaction_done",
        "transaction_open",
    )

    def __init__(self, attempt: Attempt, api: "AttemptApi", app: "App | None" = None) -> None:
        self.attempt = attempt
        self.app = app
        self.api = api
        self.lines = Lines()
        self.on_stale: Callable[[UUID], None] | None = None
        self.cancelled = False  # the job was asked to stop
        #: Whether the worker is about to stop: no step begins any more, all else may still end within the grace period.
        self.shutting_down = False
        self.is_ending = False  # a transaction of the handler's is ending the attempt: that it is gone is expected
        self.transaction_done: Outcome | None = None  # how a transaction of the handler's has ended the attempt
        self.transaction_open: Any = None  # its connection, while one is open
        self.start: Start | None = None
        self.credentials: Credentials | None = None
        self.redactor: Redactor | None = None
        self._told = False  # Cancelled has been raised in the handler
        self._phase: str | None = None
        self._progress: dict[str, Any] | None = None  # waits to be written
        self._progress_at = 0.0
        self._reporting: asyncio.Future[None] | None = None
        self._steps: Steps | None = None
        self._items: Items | None = None

    # Stopping --------------------------------------------------------------------------------------------------------

    def request_cancel(self) -> None:
        self.cancelled = True

    def raise_if_cancelled(self) -> None:
        if self.cancelled:
            self._told = True
            raise Cancelled("the job was asked to stop")

    def check(self, *, starts_work: bool) -> None:
        """Raises Cancelled, the first time or if new work would start; StaleAttempt if the attempt has ended."""
        if self.transaction_done is not None:
            raise StaleAttempt("the attempt has ended with its transaction: nothing can be written any more")
        if self.cancelled and (starts_work or not self._told):
            self.raise_if_cancelled()

    def set_ending(self, *, is_ending: bool) -> None:
        self.is_ending = is_ending

    # What it asks of the state machine -------------------------------------------------------------------------------

    async def execute(self, operation: str, values: dict[str, Any], *, starts_work: bool = False) -> Any:
        """Carry out an operation of the state machine for this attempt, unless the job was asked to stop."""
        self.check(starts_work=starts_work)
        return await self._execute(operation, values)

    async def _execute(self, operation: str, values: dict[str, Any]) -> Any:
        if self.redactor is not None:
            values = self.redactor.in_values(values)
        try:
            return await self.api.execute(self.attempt.job_id, self.attempt.attempt_id, operation, values)
        except StaleAttempt:
            await self.tell_stale()
            raise

    async def tell_stale(self) -> None:
        """Tell the engine that the attempt is gone."""
        if self.on_stale is not None:
            self.on_stale(self.attempt.attempt_id)

    async def release_lock(self, owner: str) -> None:
        values = {"owner": owner}
        await self.api.execute(self.attempt.job_id, self.attempt.attempt_id, "release_lock", values)

    # Log and progress ------------------------------------------------------------------------------------------------

    def log(self, message: str, level: str, fields: Mapping[str, Any]) -> None:
        self.add_line(message, level, fields or None)
        shown = (message, fields) if self.redactor is None else self.redactor.in_line(message, fields)
        note_line(shown[0], level, shown[1], self._tracing)
        if job_log.isEnabledFor(logging.CRITICAL):
            self._echo(message, level, fields)

    def _echo(self, message: str, level: str, fields: Mapping[str, Any]) -> None:
        """The line in the worker's own log."""
        job, kind = self.attempt.id, self.attempt.kind
        listed = "".join(f" {name}={value}" for name, value in fields.items())
        known = {"event": "log", "job": job, "kind": kind, "attempt": self.attempt.number, **fields}
        if self.redactor is not None:
            known = self.redactor.in_fields(known)
        number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
        job_log.log(number, "job %s (%s): %s", job, kind, redact(f"{message}{listed}"), extra={"fields": known})

    def add_line(self, message: str, level: str, fields: Mapping[str, Any] | None) -> None:
        if self.redactor is not None:
            message, fields = self.redactor.in_line(message, fields)
        self.lines.add(message, level, fields)

    @property
    def _tracing(self) -> bool | None:
        return False if self.app is None else app_parts(self.app).tracing

    def step_span(self, step: Step) -> AbstractContextManager[None]:
        return step_span(step.name, self._tracing)

    async def show_progress(self, shown: Mapping[str, Any]) -> None:
        """Updates in quick succession are written together; the last one counts. Raises TooLarge."""
        self.check(starts_work=False)
        progress = {name: value for name, value in shown.items() if value is not None}
        if self.redactor is not None:
            progress = self.redactor.in_fields(progress)
        text = stored_json(progress)
        if len(text) > MAX_PROGRESS:
            raise TooLarge(f"the progress has {len(text)} characters: at most {MAX_PROGRESS} are allowed")
        if time.monotonic() - self._progress_at < PROGRESS_SECONDS:
            self.keep_progress(progress)
            return
        self._progress_at = time.monotonic()
        await self._set_progress({"progress": text})

    def keep_progress(self, progress: dict[str, Any] | None) -> None:
        """Leave progress to the next report."""
        self._progress = progress

    async def begin_phase(self, name: str) -> None:
        await self._set_progress({"phase": name, "progress": "{}"}, starts_work=True)
        self._phase = name
        self._progress_at = 0.0  # its first progress is shown at once

    async def _set_progress(self, values: dict[str, Any], *, starts_work: bool = False) -> None:
        self.check(starts_work=starts_work)
        self._progress = None  # older than what is written now
        if not await self._execute("set_progress", values):
            await self.tell_stale()
            raise StaleAttempt(f"the attempt of job {self.attempt.id} is gone")

    @property
    def items(self) -> Items:
        if self._items is None:
            self._items = Items(self._move_items, lambda: self._phase)
        return self._items

    async def _move_items(self, to: str, items: list[str], why: str | None) -> dict[str, int]:
        counts: dict[str, int] = await self.execute("move_items", {"to": to, "items": items, "why": why})
        return counts

    @property
    def collected_errors(self) -> list[dict[str, Any]]:
        return [] if self._items is None else self._items.errors

    @property
    def has_report(self) -> bool:
        return bool(self.lines) or self._progress is not None

    def take_report(self) -> Report:
        """What waits to be written."""
        progress, self._progress = self._progress, None
        before = self.lines.taken
        return Report(self.lines.take(), None if progress is None else {"progress": progress}, before)

    @property
    def is_reporting(self) -> bool:
        return self._reporting is not None

    def begin_report(self) -> Report:
        """As `take_report`, for a caller that calls `end_report` when it is written: `flush` waits for that."""
        self._reporting = asyncio.get_running_loop().create_future()
        return self.take_report()

    def end_report(self) -> None:
        if self._reporting is not None:
            self._reporting.set_result(None)
            self._reporting = None

    async def flush(self) -> None:
        """Write now what waits to be written. When it returns, what was on its way before is written, too."""
        if self._reporting is not None:
            await asyncio.wait([self._reporting])
        if self.has_report:
            await self.api.report(self.attempt.job_id, self.attempt.attempt_id, self.take_report())

    # Steps -----------------------------------------------------------------------------------------------------------

    def begin_step(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Step:
        self.check(starts_work=True)
        if self.shutting_down:
            raise Cancelled("the worker is shutting down")
        return self.steps.begin(name, function, args, kwargs)

    @property
    def steps(self) -> Steps:
        if self._steps is None:
            self._steps = Steps({} if self.start is None else self.start.steps)
        return self._steps

    async def step_done(self, step: Step, value: Any) -> None:
        result = step.encode(value)
        if self.redactor is not None and result is not None:
            result = self.redactor.in_text(result)
        values = {
            "name": step.name,
            "args_hash": step.args_hash,
            "result": result,
            "ran_seconds": step.ran_seconds,
        }
        # It has run, which is recorded even if the job was asked to stop meanwhile.
        await self._execute("record_step", values)
        step.finish(result)

    async def step_failed(self, step: Step, error: Exception) -> None:
        """Keep why a step failed, for people; the error itself goes on its way."""
        if isinstance(error, Cancelled | StaleAttempt):
            return
        why = stored_json({"message": redact(message_of(error))[:2000], "type": type(error).__qualname__})
        values = {"name": step.name, "args_hash": step.args_hash, "error": why, "ran_seconds": step.ran_seconds}
        await self._execute("record_step", values)

    # Credentials -----------------------------------------------------------------------------------------------------

    def use_credentials(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self.redactor = Redactor(credentials)
        redact_output()

    def redact(self, text: str | None) -> str | None:
        """JSON text without the credentials of this attempt."""
        return text if text is None or self.redactor is None else self.redactor.in_text(text)
