"""The lines that a handler logs, until they are written: bounded, in order, with their age instead of a time."""

import json
import logging
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from fenceline.context.redaction import is_exchanging
from fenceline.model.json_text import stored_json

if TYPE_CHECKING:
    from fenceline.context.session import Session

current_session: ContextVar["Session | None"] = ContextVar("fenceline_session", default=None)

#: What handlers write with `ctx.log`; off unless somebody lowers its level (`--log-jobs`).
job_log = logging.getLogger("fenceline.job_log")
if job_log.level == logging.NOTSET:
    job_log.setLevel(logging.CRITICAL + 1)

#: Lines that may wait to be written, per attempt; further ones are counted and dropped.
MAX_WAITING_LINES = 1000
#: Characters of a line, so that waiting lines are bounded in bytes, too. The database has limits of its own.
MAX_MESSAGE = 20_000
MAX_FIELDS = 20_000


class Lines:
    __slots__ = ("_dropped", "_waiting", "taken")

    def __init__(self) -> None:
        self._waiting: list[dict[str, Any]] = []
        self._dropped = 0
        self.taken = 0  # how many lines in all

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, message: str, level: str, fields: Mapping[str, Any] | None) -> None:
        if len(self._waiting) >= MAX_WAITING_LINES:
            self._dropped += 1
            return
        line: dict[str, Any] = {"message": message[:MAX_MESSAGE], "level": level, "at": time.monotonic()}
        if fields:
            line["fields"] = bounded_fields(fields)
        self._waiting.append(line)

    def take(self) -> list[dict[str, Any]]:
        """The waiting lines, with their age: only durations are sent."""
        # Not by exchanging the list: a thread may be about to append to the one it has in hand.
        lines = self._waiting[:]
        del self._waiting[: len(lines)]
        now = time.monotonic()
        for line in lines:
            line["ago_seconds"] = round(now - line.pop("at"), 6)
        if self._dropped:
            lines.append({"message": f"{self._dropped} lines were dropped: too many at once", "level": "warning"})
            self._dropped = 0
        self.taken += len(lines)
        return lines


def bounded_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as they can be stored. Copied now, because what they refer to may change."""
    text = stored_json(fields)
    if len(text) > MAX_FIELDS:
        return {"cut": text[:MAX_FIELDS]}
    kept: dict[str, Any] = json.loads(text)
    return kept


class JobLogHandler(logging.Handler):
    """Puts what a handler logs with the standard library into its job's log."""

    def emit(self, record: logging.LogRecord) -> None:
        session = current_session.get()
        if session is None or is_exchanging.get() or record.name.startswith("fenceline."):
            return
        try:
            message = record.getMessage()
            if record.exc_info:
                message += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
            elif record.exc_text:  # it had secrets in it
                message += "\n" + record.exc_text
            session.add_line(message, record.levelname.lower(), {"logger": record.name})
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
