"""What engines, workers and servers need of a handler, but those who enqueue its jobs do not.

handler_parts(handler).function
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from fenceline.client.arguments import Arguments
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.finalizer import Finalizer

if TYPE_CHECKING:
    from fenceline.client.handler import Handler


@dataclass(frozen=True, slots=True)
class Batch:
    """How many jobs one call of a handler may get, and how long the first of them waits for the others."""

    size: int
    wait_seconds: float


@dataclass(kw_only=True, eq=False)
class HandlerSettings:
    """What `@app.job` was given. `kind_settings` go to the database; the rest stays here, for enqueues and runs."""

    #: Lane, priority, max_attempts, retry, timeout: those that were given.
    kind_settings: Mapping[str, Any] = field(default_factory=dict)
    validate: Callable[..., object] | None = None
    on_shutdown: Literal["release", "fail"] = "release"
    isolated: bool = False
    memory_limit_mb: int | None = None
    aliases: Sequence[str] = ()
    identities: Mapping[str, Sequence[str]] | None = None
    extra_args: Literal["refuse", "ignore"] | None = None  # None: the app's
    batch: Batch | None = None  # None: one call for each job


@dataclass(kw_only=True, eq=False)
class HandlerParts(HandlerSettings):
    kind: str
    function: Callable[..., Any]
    arguments: Arguments
    finalizer: Finalizer | None = None
    snapshot_provider: Callable[..., Any] | None = None

    def current_snapshot(self, args: Mapping[str, Any]) -> Any:
        """The current configuration for a job with these args."""
        if self.snapshot_provider is None:
            raise TypeError(f"kind {self.kind!r} has no snapshot provider")
        return self.snapshot_provider(**args)

    def with_snapshot(self, options: EnqueueOptions, args: Mapping[str, Any] | str) -> EnqueueOptions:
        """The options of a job with these args (values or JSON text), with the current snapshot if the kind has one."""
        if self.snapshot_provider is None or "snapshot" in options:
            return options
        values = self.arguments.decode(args) if isinstance(args, str) else args
        return {**options, "snapshot": self.current_snapshot(values)}

    def encode_many_args(self, many: Iterable[Mapping[str, Any]]) -> list[str]:
        """As `encode_args`, for many."""
        return self.arguments.encode_many(many, self.validate)

    @cached_property
    def defaults(self) -> str | None:
        """The decorator's settings as JSON text, for an enqueue."""
        return json.dumps(self.kind_settings) if self.kind_settings else None

    @property
    def declaration(self) -> dict[str, Any]:
        """What the database should know of the kind: the decorator's settings, and whether results need a finalizer."""
        # Always sent, so that what an earlier version of the program demanded no longer holds.
        identities = None if self.identities is None else {who: list(names) for who, names in self.identities.items()}
        rules = {"needs_approval": self.kind_settings.get("needs_approval", False), "identities": identities}
        return {**self.kind_settings, **rules, **({"finalizer": True} if self.finalizer is not None else {})}

    def encode_args(self, args: Mapping[str, Any]) -> str:
        """Args as JSON text, checked as an enqueue checks them. Raises InvalidArgs, and whatever `validate=` raises."""
        values = self.arguments.validate(args)
        if self.validate is not None:
            self.validate(**values)
        return self.arguments.dump(values)


def handler_parts(handler: "Handler[..., Any]") -> HandlerParts:
    return handler._parts  # noqa: SLF001 - the way in
