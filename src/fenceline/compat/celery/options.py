"""Options of tasks and calls: Celery's names in, Fenceline's out. Nothing is dropped silently."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.compat.celery.request import TASK_ID
from fenceline.errors import InvalidArgs, Unsupported

if TYPE_CHECKING:
    from fenceline.compat.celery.conf import Conf

#: Celery's name for the queue that tasks go to by default.
DEFAULT_QUEUE = "celery"

#: Options of a task: those that become its attributes, and those that ask for what Fenceline does anyway.
TASK_OPTIONS = frozenset({
    "name", "bind", "base", "queue", "priority", "max_retries", "default_retry_delay", "autoretry_for",
    "dont_autoretry_for", "expires", "rate_limit", "retry_backoff", "retry_backoff_max", "retry_jitter", "retry_kwargs",
    "ignore_result", "time_limit", "typing", "serializer",
})  # fmt: skip
NEEDLESS_OF_TASK = frozenset({
    "acks_late", "acks_on_failure_or_timeout", "compression", "lazy", "reject_on_worker_lost", "send_events", "shared",
    "store_eager_result", "store_errors_even_if_ignored", "throws", "track_started", "trail",
})  # fmt: skip
#: Options of a call about messages to a broker. There is none.
NEEDLESS_OF_CALL = frozenset({"compression", "delivery_mode", "retry", "retry_policy", "add_to_parent", "shadow"})

UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}

INSTEAD = {
    "soft_time_limit": "use time_limit; a Fenceline handler is asked to stop by ctx.cancelled",
    "pydantic": "validate in the task, or make it an @app.job handler, whose args are validated by their annotations",
    "link": "use a chain: task.s(…) | other.s(…)",
    "link_error": 'use a job that runs whatever becomes of the other: after={"jobs": […], "policy": "always"}',
    "exchange": "name the queue, which is the lane",
    "routing_key": "name the queue, which is the lane",
    "headers": "pass it as an argument",
}


def refuse(where: str, name: str) -> None:
    """Raise Unsupported for an option that Fenceline lacks."""
    raise Unsupported(f"{where} cannot take {name}: {INSTEAD.get(name, 'Fenceline has nothing like it')}")


def check_task_options(name: str, options: Mapping[str, Any]) -> None:
    for option in options.keys() - TASK_OPTIONS - NEEDLESS_OF_TASK:
        refuse(f"task {name}", option)
    if options.get("serializer", "json") != "json":
        raise Unsupported(f"task {name} cannot use the serializer {options['serializer']!r}: args and results are JSON")


def rate_of(name: str, limit: str | float) -> float:
    """Tasks per second of a `rate_limit`: "10/m", or a number. Raises Unsupported."""
    number, _, unit = str(limit).partition("/")
    try:
        return float(number) / UNIT_SECONDS[unit or "s"]
    except (KeyError, ValueError):
        raise Unsupported(f'task {name} cannot take rate_limit={limit!r}: use "10/s", "10/m" or "10/h"') from None


def read_call(task: str, options: Mapping[str, Any], conf: "Conf") -> EnqueueOptions:
    """The options of `apply_async` as those of an enqueue. Raises Unsupported."""
    found: EnqueueOptions = {}
    for name, value in options.items():
        if value is None or name in NEEDLESS_OF_CALL or (name, value) == ("serializer", "json"):
            continue
        if name not in READERS:
            refuse(f"a call of {task}", name)
        found |= READERS[name](value, conf)
    return found


def lane_of(queue: Any) -> str:
    """The lane for a queue, given by name or as a kombu.Queue."""
    name = str(getattr(queue, "name", queue))
    return "default" if name == DEFAULT_QUEUE else name


def plain_json(where: str, value: Any) -> Any:
    """The value, if it can be written as JSON. Raises InvalidArgs."""
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise InvalidArgs(f"{where} cannot be kept as JSON: {error}. Pass text or numbers, and convert them") from error
    return value


def _moment(value: datetime, zone: tzinfo) -> datetime:
    return value if value.utcoffset() is not None else value.replace(tzinfo=zone)


def _expiry(value: datetime | float, zone: tzinfo) -> datetime:
    if isinstance(value, datetime):
        return _moment(value, zone)
    return datetime.now(UTC) + timedelta(seconds=value)


READERS: "Mapping[str, Callable[[Any, Conf], EnqueueOptions]]" = {
    "countdown": lambda value, _conf: {"run_in": value},
    "eta": lambda value, conf: {"run_at": _moment(value, conf.zone)},
    "expires": lambda value, conf: {"expires_at": _expiry(value, conf.zone)},
    "queue": lambda value, _conf: {"lane": lane_of(value)},
    "priority": lambda value, conf: {"priority": -value if conf.zero_is_highest else value},
    "task_id": lambda value, _conf: {"idempotency_key": value, "labels": {TASK_ID: value}},
    "time_limit": lambda value, _conf: {"timeout": value},
}
