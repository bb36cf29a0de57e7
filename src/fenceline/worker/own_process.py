"""What the processes of a worker have in common: signals, logging, the event loop, and how they end."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys

from fenceline.context.log_output import configure_logging
from fenceline.model.worker_settings import WorkerSettings

PR_SET_PDEATHSIG = 1


def ignore_signals() -> None:
    """The parent decides when this process ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def die_with_parent() -> None:
    """Once the parent is dead nobody keeps our lease or awaits our result, so have the kernel kill us too, even while
    the loop is blocked or the GIL held. Outside Linux the end of the channel does it, a bit later.
    """
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def configure_worker_logging(settings: WorkerSettings, worker: int | None = None) -> None:
    """Configure logging as a worker's or runner's settings say. Libraries never log below info."""
    wanted = logging.getLevelNamesMapping()[(settings.log_level or "info").upper()]
    configure_logging(
        settings.log_format,
        level=max(wanted, logging.INFO),
        worker=worker,
        all_tracebacks=wanted <= logging.DEBUG,
    )
    logging.getLogger("fenceline").setLevel(wanted)
    logging.getLogger("fenceline.jobs").setLevel(logging.WARNING if settings.log_level is None else wanted)
    logging.getLogger("fenceline.job_log").setLevel(logging.DEBUG if settings.log_jobs else logging.CRITICAL + 1)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request


def new_event_loop() -> asyncio.AbstractEventLoop:
    """One of uvloop's, where that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def end(code: int) -> None:
    """Exit at once: a thread that a handler left behind must not keep the process alive."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
