"""What a worker or runner says of itself and of its jobs, to `logging`: the same fields in text and as JSON.

Three loggers, so that each can be had or not: `fenceline.worker` (start, stop, connections, crashes), `fenceline.jobs`
(how attempts end; that one went well is said at level info only, and not unless somebody asks for it) and
`fenceline.job_log` (what handlers write with `ctx.log`, only if asked for).
A failure's record carries its exception, for handlers of `logging` that collect those.
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
if jobs_log.level == logging.NOTSET:  # nobody has said otherwise: quiet while all goes well
    jobs_log.setLevel(logging.WARNING)

#: So many kinds are named in a line.
MAX_NAMED = 12
#: Arguments of so many characters or more are not shown in lines about failures.
MIN_HIDDEN = 8
_UNKNOWN = AttemptEnd(UUID(int=0), is_final=False, asked="", next_seconds=None)


class WorkerLog:
    """A worker's first line and its last."""

    def __init__(self, app: str, kinds: Iterable[str], settings: WorkerSettings) -> None:
        self._kinds = kinds  # more may be registered until it starts
        self._fields: dict[str, Any] = {
            "app": app,
            "lanes": None if settings.lanes is None else list(settings.lanes),
            "processes": settings.processes,
            "concurrency": settings.concurrency,
        }
        self._since: float | None = None

    def log_started(self, where: str) -> None:
        """Once. `where`: the database, without its password, or the server."""
        if self._since is not None:
            return
        self._since = time.monotonic()
        fields = {**self._fields, "source": where, "kinds": sorted(self._kinds)}
        lanes = "all" if fields["lanes"] is None else ", ".join(fields["lanes"])
        log.info(
            "started: app %s, %s, lanes %s, kinds %s, processes %s, concurrency %s",
            fields["app"], where, lanes, _named(fields["kinds"]), fields["processes"], fields["concurrency"],
            extra={"fields": {"event": "started", **fields}},
        )  # fmt: skip

    def log_stopped(self) -> None:
        if self._since is None:
            return  # it has not started
        seconds = round(time.monotonic() - self._since, 1)
        fields = {"event": "stopped", "app": self._fields["app"], "seconds": seconds}
        log.info("stopped: app %s, after %s s", self._fields["app"], seconds, extra={"fields": fields})


async def log_endings(endings: Sequence[Ending], delivery: Delivery) -> None:
    """How attempts ended, once that is in the database: only then it is known what follows."""
    failed = [ending for ending in endings if ending.outcome in _FAILURES]
    ends = await delivery.find_ends(failed) if failed else {}
    logs_all = jobs_log.isEnabledFor(logging.INFO)
    for ending in endings if logs_all else failed:
        if ending.outcome in _FAILURES:
            _log_failed(ending, ends.get(ending.attempt.attempt_id, _UNKNOWN))
        else:
            _log_ended(ending)


_FAILURES = frozenset({Outcome.FAILED, Outcome.FAILED_FOR_GOOD, Outcome.REFUSED, Outcome.CRASHED})


def _log_failed(ending: Ending, end: AttemptEnd) -> None:
    attempt, told = ending.attempt, json.loads(ending.error or "{}")
    error = _without_args(told, attempt)
    what = ": ".join(str(error[part]) for part in ("type", "message") if error.get(part))
    word, level = _judge(ending.outcome, end)
    follows = "" if end.next_seconds is None or word == "refused" else f"; retry in {end.next_seconds:.1f} s"
    fields = {
        **_fields(ending, word),
        "error_type": error.get("type"),
        "error": error.get("message"),
        "code": error.get("code"),
        "retry_in_seconds": end.next_seconds,
    }
    failure = ending.cause if ending.is_loggable and error == told else HandlerFailure.of(error)
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
        extra={"fields": {**_fields(ending, ending.outcome), "seconds": ending.ran_seconds}},
    )  # fmt: skip


def _fields(ending: Ending, event: str) -> dict[str, Any]:
    return {"event": str(event), **fields_of(ending.attempt)}


def fields_of(attempt: Attempt) -> dict[str, Any]:
    """What a line about an attempt says in any case."""
    return {
        "job": attempt.id,
        "kind": attempt.kind,
        "lane": attempt.lane,
        "attempt": attempt.number,
        "max_attempts": attempt.max_attempts,
    }


def _without_args(error: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
    """Logs are read by more people than jobs are: what a job was given is not in them, whatever its exceptions say."""
    hidden = sorted(set(_texts(json.loads(attempt.args))), key=len, reverse=True)
    shown = dict(error)
    for part in ("message", "traceback"):
        for text in hidden:
            if isinstance(shown.get(part), str):
                shown[part] = shown[part].replace(text, "[argument]")
    return shown


def _texts(value: Any) -> Iterator[str]:
    """The texts in a JSON value that are long enough to be somebody's secret."""
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
