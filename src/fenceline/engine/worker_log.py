"""What a worker or runner logs about itself and its jobs: the same fields in text and as JSON.

Three loggers, which can be switched on and off separately: `fenceline.worker` (start, stop, connections, crashes),
`fenceline.jobs` (how attempts end; successes at level info, which is off unless asked for) and `fenceline.job_log`
(what handlers write with `ctx.log`, off unless asked for).
The record of a failure carries its exception, for `logging` handlers that collect exceptions.
"""

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from fenceline.context.attempt import Attempt, Ending
from fenceline.context.failure import HandlerFailure
from fenceline.database.calls.attempts import AttemptEnd
from fenceline.delivery.contract import Delivery
from fenceline.model.outcome import Outcome
from fenceline.model.worker_settings import WorkerSettings

log = logging.getLogger("fenceline.worker")
jobs_log = logging.getLogger("fenceline.jobs")
if jobs_log.level == logging.NOTSET:  # not configured: quiet while all goes well
    jobs_log.setLevel(logging.WARNING)

#: How many kinds a line names.
MAX_NAMED = 12
#: Arguments of at least this many characters are hidden in lines about failures.
MIN_HIDDEN = 8
_UNKNOWN = AttemptEnd(UUID(int=0), is_final=False, asked="", next_seconds=None)


class WorkerLog:
    """A worker's first line and its last."""

    def __init__(self, app: str, kinds: Iterable[str], settings: WorkerSettings) -> None:
        self._app = app
        self._kinds = kinds  # more may be registered before it starts
        self._settings = settings
        self._since: float | None = None

    def log_started(self, where: str) -> None:
        """Once. `where`: the database, without its password, or the server."""
        if self._since is not None:
            return
        self._since = time.monotonic()
        settings, kinds = self._settings, sorted(self._kinds)
        lanes = None if settings.lanes is None else list(settings.lanes)
        fields = {
            "event": "started", "app": self._app, "lanes": lanes, "processes": settings.processes,
            "concurrency": settings.concurrency, "source": where, "kinds": kinds,
        }  # fmt: skip
        log.info(
            "started: app %s, %s, lanes %s, kinds %s, processes %s, concurrency %s", self._app, where,
            "all" if lanes is None else ", ".join(lanes), _named(kinds), settings.processes, settings.concurrency,
            extra={"fields": fields},
        )  # fmt: skip

    def log_stopped(self) -> None:
        if self._since is None:
            return  # it has not started
        seconds = round(time.monotonic() - self._since, 1)
        fields = {"event": "stopped", "app": self._app, "seconds": seconds}
        log.info("stopped: app %s, after %s s", self._app, seconds, extra={"fields": fields})


async def log_endings(endings: Sequence[Ending], delivery: Delivery) -> None:
    """Log how attempts ended, once the database knows: only then is it known what follows."""
    failed = [ending for ending in endings if ending.outcome.is_failure]
    ends = await delivery.find_ends(failed) if failed else {}
    logs_all = jobs_log.isEnabledFor(logging.INFO)
    for ending in endings if logs_all else failed:
        if ending.outcome.is_failure:
            _log_failed(ending, ends.get(ending.attempt.attempt_id, _UNKNOWN))
        else:
            _log_ended(ending)


def _log_failed(ending: Ending, end: AttemptEnd) -> None:
    attempt, full_error = ending.attempt, json.loads(ending.error or "{}")
    error = _without_args(full_error, attempt)
    what = ": ".join(str(error[part]) for part in ("type", "message") if error.get(part))
    word, level = _judge(ending.outcome, end)
    follows = "" if end.next_seconds is None or word == "refused" else f"; retry in {end.next_seconds:.1f} s"
    fields = {
        **_fields(attempt, word),
        "error_type": error.get("type"),
        "error": error.get("message"),
        "code": error.get("code"),
        "retry_in_seconds": end.next_seconds,
    }
    failure = ending.cause if ending.is_loggable and error == full_error else HandlerFailure.of(error)
    if word == "refused":
        failure = None  # nothing has run
    jobs_log.log(
        level, "job %s (%s) %s, attempt %s of %s: %s%s", attempt.id, attempt.kind, _WORDS[word], attempt.number,
        attempt.max_attempts, what, follows,
        exc_info=None if failure is None else (type(failure), failure, failure.__traceback__),
        extra={"fields": fields, "is_brief": level < logging.ERROR},
    )  # fmt: skip


_WORDS: Mapping[str, str] = {
    "failed": "failed",
    "failed_for_good": "failed for good",
    "refused": "is left to workers with another version of its handler",
    "crashed": "killed its process",
    "quarantined": "is quarantined: it has killed its process again and again",
}


def _judge(outcome: Outcome, end: AttemptEnd) -> tuple[str, int]:
    """The event's word and its level."""
    if end.asked == "quarantined":
        return "quarantined", logging.ERROR
    if outcome is Outcome.CRASHED:
        return "crashed", logging.ERROR
    if outcome is Outcome.FAILED_FOR_GOOD or end.is_final:
        return "failed_for_good", logging.ERROR
    return ("refused" if outcome is Outcome.REFUSED else "failed"), logging.WARNING


def _log_ended(ending: Ending) -> None:
    attempt = ending.attempt
    took = "" if ending.ran_seconds is None else f" after {ending.ran_seconds:.3f} s"
    jobs_log.info(
        "job %s (%s) %s, attempt %s of %s%s", attempt.id, attempt.kind, ending.outcome.replace("_", " "),
        attempt.number, attempt.max_attempts, took,
        extra={"fields": {**_fields(attempt, ending.outcome), "seconds": ending.ran_seconds}},
    )  # fmt: skip


def _fields(attempt: Attempt, event: str) -> dict[str, Any]:
    """What a line about an attempt says in any case."""
    return {
        "event": str(event),
        "job": attempt.id,
        "kind": attempt.kind,
        "lane": attempt.lane,
        "attempt": attempt.number,
        "max_attempts": attempt.max_attempts,
    }


def _without_args(error: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
    """More people read logs than jobs: arguments are kept out of them, even where an exception quotes them."""
    hidden = sorted(set(_texts(json.loads(attempt.args))), key=len, reverse=True)
    shown = dict(error)
    for part in ("message", "traceback"):
        for text in hidden:
            if isinstance(shown.get(part), str):
                shown[part] = shown[part].replace(text, "[argument]")
    return shown


def _texts(value: Any) -> Iterator[str]:
    """The texts in a JSON value that are long enough to be a secret."""
    match value:
        case str() if len(value) >= MIN_HIDDEN:
            yield value
        case list():
            for item in value:
                yield from _texts(item)
        case dict():
            for item in value.values():
                yield from _texts(item)


def _named(kinds: Sequence[str]) -> str:
    more = f" and {len(kinds) - MAX_NAMED} more" if len(kinds) > MAX_NAMED else ""
    return ", ".join(kinds[:MAX_NAMED]) + more
