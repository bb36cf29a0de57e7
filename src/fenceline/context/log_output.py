"""What a worker, runner or server writes to its standard error: lines for people, or JSON for machines."""

import copy
import json
import logging
import time
import traceback
from typing import Any

from fenceline.context.log_lines import current_session
from fenceline.model.visible import visible

TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class TextFormatter(logging.Formatter):
    """A line for people, without characters that would control their terminals."""

    def __init__(self, *, all_tracebacks: bool = False) -> None:
        super().__init__(TEXT)
        self._all_tracebacks = all_tracebacks

    def format(self, record: logging.LogRecord) -> str:
        if _is_brief(record) and not self._all_tracebacks:
            record = copy.copy(record)  # other handlers see the exception
            record.exc_info = record.exc_text = None
        return visible(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object per line: at, level, logger, message; worker; job, kind and attempt inside a handler.

    Elsewhere `extra={"job": …, "kind": …, "attempt": …}` gives these, and `extra={"fields": {…}}` adds any fields.
    """

    def __init__(self, worker: int | None = None, *, all_tracebacks: bool = False) -> None:
        super().__init__()
        self.worker = worker
        self._all_tracebacks = all_tracebacks

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "at": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        if self.worker is not None:
            line["worker"] = self.worker
        session = current_session.get()
        if session is not None:
            line |= {"job": session.attempt.id, "kind": session.attempt.kind, "attempt": session.attempt.number}
        line |= {name: getattr(record, name) for name in ("job", "kind", "attempt") if hasattr(record, name)}
        line |= getattr(record, "fields", {})
        if self._all_tracebacks or not _is_brief(record):
            if record.exc_info:
                line["exception"] = "".join(traceback.format_exception(*record.exc_info))
            elif record.exc_text:  # it had secrets in it
                line["exception"] = record.exc_text
        return json.dumps(line, default=str)


def _is_brief(record: logging.LogRecord) -> bool:
    """Whether the line without its traceback is enough for most readers: the job runs again."""
    return bool(getattr(record, "is_brief", False))


def configure_logging(
    log_format: str,
    *,
    level: int = logging.INFO,
    worker: int | None = None,
    all_tracebacks: bool = False,
) -> None:
    """Send the logs of this process to standard error, as `text` or `json`. A second call replaces the first."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter(worker, all_tracebacks=all_tracebacks)
        if log_format == "json"
        else TextFormatter(all_tracebacks=all_tracebacks)
    )
    root = logging.getLogger()
    for old in [old for old in root.handlers if getattr(old, "of_fenceline", False)]:
        root.removeHandler(old)
    handler.of_fenceline = True  # type: ignore[attr-defined]  # to know it again
    root.addHandler(handler)
    root.setLevel(level)
