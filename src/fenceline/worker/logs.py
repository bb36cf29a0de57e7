"""What a worker process writes to its standard error: lines for people, or JSON for machines."""

import json
import logging
import time
import traceback
from typing import Any

from fenceline.context.lines import current_context

TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object per line: at, level, logger, message; worker; job, kind and attempt inside a handler.

    `extra={"job": …, "kind": …, "attempt": …}` says them elsewhere.
    """

    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self.worker = worker

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
        context = current_context.get()
        if context is not None:
            line |= {"job": context.job, "kind": context.kind, "attempt": context.attempt}
        line |= {name: getattr(record, name) for name in ("job", "kind", "attempt") if hasattr(record, name)}
        if record.exc_info:
            line["exception"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line, default=str)


def configure_logging(log_format: str, *, level: int = logging.INFO, worker: int | None = None) -> None:
    """Send the logs of this process to standard error, as `text` or `json`. Said again, it replaces the first."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(worker) if log_format == "json" else logging.Formatter(TEXT))
    root = logging.getLogger()
    for old in [old for old in root.handlers if getattr(old, "of_fenceline", False)]:
        root.removeHandler(old)
    handler.of_fenceline = True  # type: ignore[attr-defined]  # to know it again
    root.addHandler(handler)
    root.setLevel(level)
