"""`ctx.enqueue`: jobs that come to be when the attempt succeeds, in the same transaction."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fenceline.client.arguments import encode_plain
from fenceline.client.job_verbs import Job
from fenceline.client.options import EnqueueOptions, encode_options
from fenceline.errors import InvalidOption
from fenceline.model.public_id import parse_id

if TYPE_CHECKING:
    from fenceline.client.handler import Handler
    from fenceline.context.context import Context


async def add_children(
    context: "Context",
    kind: "str | Handler[Any, Any]",
    many: Iterable[Mapping[str, Any]],
    options: EnqueueOptions,
) -> list[Job[Any]]:
    """Ask for a child per mapping of args, all with the same options; handles in order."""
    if "connection" in options:
        raise InvalidOption("children are made in the transaction that ends the attempt: connection= has no place here")
    handler = _handler_of(context, kind)
    if handler is None:
        assert isinstance(kind, str)  # noqa: S101 - else it would be the handler
        return await _ask(context, kind, [encode_plain(kind, args) for args in many], options)
    encoded = handler.encode_many_args(many)
    if handler.snapshot_provider is None or "snapshot" in options:
        return await _ask(context, handler.kind, encoded, options, handler)
    # Those with the same snapshot of the configuration go together, which are all as a rule.
    alike: dict[str, tuple[EnqueueOptions, list[int]]] = {}
    for place, text in enumerate(encoded):
        own: EnqueueOptions = {**options, "snapshot": handler.current_snapshot(handler.arguments.decode(text))}
        alike.setdefault(encode_options(own), (own, []))[1].append(place)
    children: dict[int, Job[Any]] = {}
    for own, places in alike.values():
        made = await _ask(context, handler.kind, [encoded[place] for place in places], own, handler)
        children |= zip(places, made, strict=True)
    return [children[place] for place in range(len(encoded))]


async def _ask(
    context: "Context",
    kind: str,
    encoded: list[str],
    options: EnqueueOptions,
    handler: "Handler[Any, Any] | None" = None,
) -> list[Job[Any]]:
    if not encoded:
        return []
    values = {
        "kind": kind,
        "args": encoded,
        "options": encode_options(options),
        "defaults": None if handler is None else handler.defaults,
        "request_id": str(uuid4()),
    }
    ids = await context.ask("add_children", values, starts_work=True)
    caller_of = _no_caller if context.app is None else context.app.caller
    arguments = None if handler is None else handler.arguments
    return [Job(caller_of, parse_id(child), arguments=arguments) for child in ids]


def _handler_of(context: "Context", kind: "str | Handler[Any, Any]") -> "Handler[Any, Any] | None":
    if isinstance(kind, str):
        return None if context.app is None else context.app.handlers.get(kind)
    return kind


def _no_caller() -> Any:
    raise InvalidOption("this handle has only an id: the handler runs without a database of its own")
