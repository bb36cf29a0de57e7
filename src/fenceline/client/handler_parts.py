"""What engines, workers and servers need of a handler, and those who enqueue its jobs do not.

handler_parts(handler).function
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fenceline.client.arguments import Arguments
from fenceline.client.finalizer import Finalizer

if TYPE_CHECKING:
    from fenceline.client.handler import Handler


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSettings:
    """What `@app.job` says: `kind_settings` go to the database, the rest stays here, for enqueues and runs."""

    kind_settings: Mapping[str, Any]
    validate: Callable[..., object] | None
    on_shutdown: Literal["release", "fail"]
    isolated: bool
    memory_limit_mb: int | None
    aliases: tuple[str, ...]
    identities: Mapping[str, Sequence[str]] | None = None
    extra_args: Literal["refuse", "ignore"] | None = None  # None: as the app says
    batch: "Batch | None" = None  # None: one call for each job


@dataclass(frozen=True, slots=True)
class Batch:
    """How many jobs one call of a handler may have, and how long the first of them waits for the others."""

    size: int
    wait_seconds: float


class HandlerParts:
    def __init__(
        self, kind: str, function: Callable[..., Any], arguments: Arguments, settings: HandlerSettings
    ) -> None:
        self._kind = kind
        self._identities = settings.identities
        self.validate = settings.validate
        self.aliases = settings.aliases
        self.on_shutdown = settings.on_shutdown
        self.isolated = settings.isolated
        self.memory_limit_mb = settings.memory_limit_mb
        self.batch = settings.batch
        self.function = function
        self.arguments = arguments
        #: What the decorator says about the kind, for the database: lane, priority, max_attempts, retry, timeout.
        self.kind_settings = dict(settings.kind_settings)
        self.finalizer: Finalizer | None = None
        self.snapshot_provider: Callable[..., Any] | None = None

    def current_snapshot(self, args: Mapping[str, Any]) -> Any:
        """The current configuration for a job with these args."""
        if self.snapshot_provider is None:
            raise TypeError(f"kind {self._kind!r} has no snapshot provider")
        return self.snapshot_provider(**args)

    def encode_many_args(self, many: Iterable[Mapping[str, Any]]) -> list[str]:
        """Args as JSON text, each validated as an enqueue would. Raises InvalidArgs."""
        return self.arguments.encode_many(many, self.validate)

    @property
    def defaults(self) -> str | None:
        """What the decorator says, as JSON text for an enqueue."""
        return json.dumps(self.kind_settings) if self.kind_settings else None

    @property
    def declaration(self) -> dict[str, Any]:
        """What the database should know of the kind: what the decorator says, and that results need a finalizer."""
        # Said also where there is none: what an earlier version of the program demanded is over.
        rules = {"needs_approval": self.kind_settings.get("needs_approval", False), "identities": self._identities}
        return {**self.kind_settings, **rules, **({"finalizer": True} if self.finalizer is not None else {})}

    @property
    def has_validate(self) -> bool:
        """Whether checking args runs code of the application's own, which may take its time."""
        return self.validate is not None

    def encode_args(self, args: Mapping[str, Any]) -> str:
        """Args as JSON text, checked as an enqueue checks them. Raises InvalidArgs, and whatever `validate=` raises."""
        values = self.arguments.validate(args)
        if self.validate is not None:
            self.validate(**values)
        return self.arguments.dump(values)


def handler_parts(handler: "Handler[..., Any]") -> HandlerParts:
    return handler._parts  # noqa: SLF001 - this is the door
