"""`app.conf`: the settings that matter here and those that can be ignored. Any other is refused."""

import importlib
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

from fenceline.errors import Unsupported

#: Used here or by the app.
READ = frozenset({
    "beat_schedule", "broker_url", "imports", "include", "task_default_priority", "task_default_queue",
    "task_ignore_result", "task_routes", "task_time_limit", "timezone",
})  # fmt: skip
#: Accepted and ignored: they concern a broker, a result backend or Celery's workers, and there are none.
NEEDLESS_PREFIXES = ("beat_", "broker_", "cache_", "database_", "event_", "redis_", "result_", "security_", "worker_")
NEEDLESS = frozenset({
    "accept_content", "deprecated_settings", "enable_utc", "task_acks_late", "task_acks_on_failure_or_timeout",
    "task_compression", "task_create_missing_queues", "task_default_delivery_mode", "task_eager_propagates",
    "task_inherit_parent_priority", "task_protocol", "task_publish_retry", "task_publish_retry_policy",
    "task_queue_max_priority", "task_queues", "task_reject_on_worker_lost", "task_remote_tracebacks",
    "task_send_sent_event", "task_store_errors_even_if_ignored", "task_track_started",
})  # fmt: skip
SERIALIZERS = ("task_serializer", "result_serializer", "event_serializer")
INSTEAD = {
    "task_always_eager": "jobs run at their enqueue with FENCELINE_DELIVERY=inline in the environment",
    "task_annotations": "say it in the decorator",
    "task_default_rate_limit": "a rate belongs to a lane: fenceline lanes set NAME --rate-per-second N",
    "task_soft_time_limit": "use task_time_limit",
}


class Conf:
    """Settings as attributes or items.

    A source is read when the first setting is needed, because its module may still be being imported now.
    """

    _values: dict[str, Any]

    def __init__(self, **values: Any) -> None:
        object.__setattr__(self, "_sources", [])
        object.__setattr__(self, "_values", {})
        self.update({name: value for name, value in values.items() if value is not None})

    def update(self, values: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Raises Unsupported for a setting that matters and would have no effect."""
        for name, value in {**(values or {}), **more}.items():
            self[name] = value

    def read_later(self, source: Any, namespace: str | None) -> None:
        """`source`: an object, or its name as "module" or "module:attribute"."""
        self._sources.append((source, namespace))

    def __setitem__(self, name: str, value: Any) -> None:
        if name in SERIALIZERS and value != "json":
            raise Unsupported(f"{name} cannot be {value!r}: args and results are JSON")
        if name in INSTEAD and value:
            raise Unsupported(f"{name} cannot be set: {INSTEAD[name]}")
        known = name in READ or name in NEEDLESS or name in SERIALIZERS or name in INSTEAD
        if not known and not name.startswith(NEEDLESS_PREFIXES):
            raise Unsupported(f"{name} is not a known setting: use {', '.join(sorted(READ))}")
        self._values[name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __getitem__(self, name: str) -> Any:
        return self.get(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._read_sources()
        return self._values.get(name, default)

    @property
    def broker(self) -> str:
        return str(self.get("broker_url") or os.environ.get("CELERY_BROKER_URL") or "")

    @property
    def zero_is_highest(self) -> bool:
        """Whether priority 0 comes first, as with Redis. With RabbitMQ 9 does."""
        return self.broker.startswith(("redis", "sentinel"))

    @property
    def zone(self) -> tzinfo:
        """The zone of times that name none."""
        name = self.get("timezone")
        return UTC if name is None else name if isinstance(name, tzinfo) else ZoneInfo(str(name))

    def route(self, task: str) -> Mapping[str, Any]:
        """The first entry of `task_routes` that fits the task. Raises Unsupported for a router function."""
        routes = self.get("task_routes") or {}
        if not isinstance(routes, Mapping):
            raise Unsupported("task_routes must be a dict of task names, or patterns, and queues")
        found: Any = next((routes[pattern] for pattern in routes if fnmatchcase(task, pattern)), {})
        return found if isinstance(found, Mapping) else {"queue": found}

    def _read_sources(self) -> None:
        while self._sources:
            source, namespace = self._sources.pop(0)
            for name, value in _settings(source, namespace):
                if name not in self._values:  # settings made by code come first
                    self[name] = value


def _settings(source: Any, namespace: str | None) -> Iterator[tuple[str, Any]]:
    """With a namespace, as in Django's settings, the names that begin with it; otherwise all lower-case names."""
    found = _import(source) if isinstance(source, str) else source
    values = found if isinstance(found, Mapping) else {name: getattr(found, name) for name in dir(found)}
    prefix = f"{namespace}_" if namespace else ""
    for name, value in values.items():
        if namespace is not None and name.startswith(prefix):
            yield name.removeprefix(prefix).lower(), value
        elif namespace is None and name.islower() and not name.startswith("_"):
            yield name, value


def _import(name: str) -> Any:
    module, _, attribute = name.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found
