"""`ctx.enqueue`: jobs that are made when the attempt succeeds, in the same transaction."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fenceline.client.app_parts import app_parts
from fenceline.client.arguments import encode_plain
from fenceline.client.enqueue_options import EnqueueOptions, encode_options
from fenceline.client.enqueue_tracing import enqueue_span
from fenceline.client.handler_parts import HandlerParts, handler_parts
from fenceline.client.job import Job
from fenceline.errors import InvalidOption
from fenceline.model.public_id import parse_id

if TYPE_CHECKING:
    from fenceline.client.handler import Handler
    from fenceline.context.session import Session


async def add_children(
    session: "Session",
    kind: "str | Handler[..., Any]",
    many: Iterable[Mapping[str, Any]],
    options: EnqueueOptions,
) -> list[Job[Any]]:
    """Ask for a child per mapping of args, all with the same options; handles in order."""
    if "connection" in options:
        raise InvalidOption(
            "connection= cannot be used here: children are made in the transaction that ends the attempt"
        )
    if "actor" in options:
        raise InvalidOption("actor= cannot be used here: children have the actor of their parent")
    handlers = {} if session.app is None else app_parts(session.app).handlers
    handler = handlers.get(kind) if isinstance(kind, str) else kind
    if handler is None:
        name = str(kind)
        return await _ask(session, name, [encode_plain(name, args) for args in many], options)
    parts = handler_parts(handler)
    encoded = parts.encode_many_args(many)
    if parts.snapshot_provider is None or "snapshot" in options:
        return await _ask(session, handler.kind, encoded, options, parts)
    # Those with the same snapshot of the configuration go together: usually all of them.
    alike: dict[str, tuple[EnqueueOptions, list[int]]] = {}
    for place, text in enumerate(encoded):
        own = parts.with_snapshot(options, text)
        alike.setdefault(encode_options(own), (own, []))[1].append(place)
    children: dict[int, Job[Any]] = {}
    for own, places in alike.values():
        made = await _ask(session, handler.kind, [encoded[place] for place in places], own, parts)
        children |= zip(places, made, strict=True)
    return [children[place] for place in range(len(encoded))]


async def _ask(
    session: "Session",
    kind: str,
    encoded: list[str],
    options: EnqueueOptions,
    parts: HandlerParts | None = None,
) -> list[Job[Any]]:
    if not encoded:
        return []
    with enqueue_span(
        kind, False if session.app is None else app_parts(session.app).tracing, len(encoded)
    ) as traceparent:
        values = {
            "kind": kind,
            "args": encoded,
            "options": encode_options(options, traceparent),
            "defaults": None if parts is None else parts.defaults,
            "request_id": str(uuid4()),
        }
        ids = await session.execute("add_children", values, starts_work=True)
    get_database = _no_database if session.app is None else app_parts(session.app).database
    arguments = None if parts is None else parts.arguments
    return [Job(get_database, parse_id(child), arguments=arguments) for child in ids]


def _no_database() -> Any:
    raise InvalidOption("this handle has only an id: the handler runs without a database")
