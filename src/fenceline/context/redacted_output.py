"""Keeps the credentials of jobs out of what the process that runs them prints and logs.

It starts with the first credentials in the process, whatever runs the handler: a worker, the process of an isolated
handler, a runner, or a worker inside another program. Standard output and error are redacted in place, which includes
code that took hold of them before; a secret that comes in several writes is held back until it is complete. What is
written to a file descriptor directly, or by a program that a handler starts, does not pass here.
"""

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fenceline.context.log_lines import current_session
from fenceline.context.redaction import REDACTED, has_secrets, is_exchanging, open_end, redact

_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")


class Guard:
    """Stands before the `write` and `flush` of a text stream; all else is the stream's own."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._write: Callable[[str], int] = stream.write
        self._flush: Callable[[], None] = stream.flush
        self._lock = threading.RLock()
        #: By job, because jobs that print at the same time must not break up each other's secrets: the ends of texts
        #: that may be the beginning of one.
        self._held: dict[int, str] = {}

    def write(self, text: str) -> int:
        if not self._held and not has_secrets():
            return self._write(text)
        with self._lock:
            self._release()
            writer = id(current_session.get())
            whole = redact(self._held.pop(writer, "") + text)
            end = len(whole) - open_end(whole)
            self._write(whole[:end])
            if end < len(whole):
                self._held[writer] = whole[end:]
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self._held:
            with self._lock:
                self._release()
        self._flush()

    def _release(self) -> None:
        """Write what was held back for secrets of jobs that have ended meanwhile."""
        for writer, text in list(self._held.items()):
            if not open_end(text):
                self._write(self._held.pop(writer))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class RecordFactory:
    """Makes log records without credentials, whichever handlers they go to."""

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._make(*args, **kwargs)
        if is_exchanging.get() and record.levelno < logging.INFO:
            record.msg, record.args = REDACTED, ()  # libraries quote requests and answers there
        if has_secrets():
            _redact_record(record)
        return record


def redact_output() -> None:
    """Let nothing that this process prints or logs from now on show credentials."""
    for name in _STREAMS:
        stream = getattr(sys, name, None)
        if stream is None or isinstance(stream, Guard) or isinstance(getattr(stream.write, "__self__", None), Guard):
            continue
        guard = Guard(stream)
        try:
            stream.write, stream.flush = guard.write, guard.flush
        except AttributeError:  # a stream of somebody's own
            setattr(sys, name, guard)
    make = logging.getLogRecordFactory()
    if not isinstance(make, RecordFactory):
        logging.setLogRecordFactory(RecordFactory(make))


@contextmanager
def exchanging() -> Iterator[None]:
    """While credentials are fetched: debug lines say nothing, and the job's log takes none at all."""
    redact_output()
    token = is_exchanging.set(True)
    try:
        yield
    finally:
        is_exchanging.reset(token)


def _redact_record(record: logging.LogRecord) -> None:
    try:
        message = record.getMessage()
    except Exception:  # noqa: BLE001 - wrong arguments: logging reports them when it formats the record
        return
    redacted = redact(message)
    if redacted != message:
        record.msg, record.args = redacted, ()
    if record.exc_info and record.exc_info[0] is not None:
        text = "".join(traceback.format_exception(*record.exc_info)).rstrip()
        redacted = redact(text)
        if redacted != text:
            record.exc_info, record.exc_text = None, redacted
