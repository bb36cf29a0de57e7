"""What a handler knows and can do while it runs."""

import json
import logging
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from fenceline.errors import Cancelled
from fenceline.model.json_text import stored_json
from fenceline.worker.attempt import Attempt

current_context: ContextVar["Context | None"] = ContextVar("fenceline_context", default=None)

#: Lines that may wait to be written, per attempt; what comes beyond is counted and dropped.
MAX_WAITING_LINES = 1000
#: Of a line, so that those that wait are bounded in bytes too. The database cuts at its own limit and says so.
MAX_MESSAGE = 20_000
MAX_FIELDS = 20_000


class Context:
    """Handed to handlers that have a parameter `ctx`.

    `attempt_id` is the fence and `token` the fencing token of this attempt: give the token to outside systems that can
    refuse an older one.
    """

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._cancelled = False
        self.lines: list[dict[str, Any]] = []
        self.dropped_lines = 0

    @property
    def job(self) -> str:
        """The job's public id."""
        return self._attempt.id

    @property
    def job_id(self) -> int:
        return self._attempt.job_id

    @property
    def kind(self) -> str:
        return self._attempt.kind

    @property
    def tenant(self) -> str:
        return self._attempt.tenant

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._attempt.number

    @property
    def attempt_id(self) -> UUID:
        return self._attempt.attempt_id

    @property
    def token(self) -> int:
        return self._attempt.token

    @property
    def cancelled(self) -> bool:
        """Whether the job was asked to stop. It may still keep what it has done, until its grace period is over."""
        return self._cancelled

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` when the job was asked to stop."""
        if self._cancelled:
            raise Cancelled("the job was asked to stop")

    @property
    def traceparent(self) -> str | None:
        """The trace context of the enqueue, as W3C writes it, if it had one."""
        found = self._attempt.details.get("traceparent")
        return found if isinstance(found, str) else None

    def log(self, message: str, *, level: str = "info", **fields: Any) -> None:
        """Add a line to the job's log; it is written within a second, in order. Very long lines are cut."""
        self.add_line(str(message), level, fields or None)

    def add_line(self, message: str, level: str, fields: Mapping[str, Any] | None) -> None:
        if len(self.lines) >= MAX_WAITING_LINES:
            self.dropped_lines += 1
            return
        line: dict[str, Any] = {"message": message[:MAX_MESSAGE], "level": level, "at": time.monotonic()}
        if fields:
            line["fields"] = bounded_fields(fields)
        self.lines.append(line)

    def request_cancel(self) -> None:
        self._cancelled = True

    def take_lines(self) -> list[dict[str, Any]]:
        """The lines that wait, with their age instead of a clock's time: only durations cross the wire."""
        # Not by exchanging the list: a thread may be about to append to the one it has in hand.
        lines = self.lines[:]
        del self.lines[: len(lines)]
        now = time.monotonic()
        for line in lines:
            line["ago_seconds"] = round(now - line.pop("at"), 6)
        if self.dropped_lines:
            lines.append({"message": f"{self.dropped_lines} lines were dropped: too many at once", "level": "warning"})
            self.dropped_lines = 0
        return lines


def bounded_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as they can be stored, taken now: what they refer to may change later."""
    text = stored_json(fields)
    if len(text) > MAX_FIELDS:
        return {"cut": text[:MAX_FIELDS]}
    kept: dict[str, Any] = json.loads(text)
    return kept


class JobLogHandler(logging.Handler):
    """Puts what a handler logs with the standard library into its job's log."""

    def emit(self, record: logging.LogRecord) -> None:
        context = current_context.get()
        if context is None or record.name.startswith("fenceline."):
            return
        try:
            message = record.getMessage()
            if record.exc_info:
                message += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
            context.add_line(message, record.levelname.lower(), {"logger": record.name})
        except Exception:  # noqa: BLE001 - as every handler of logging does: a bad line is reported, not raised
            self.handleError(record)


@contextmanager
def job_logging() -> Iterator[None]:
    """While a worker runs, the root logger also writes to the logs of jobs."""
    handler = JobLogHandler()
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
