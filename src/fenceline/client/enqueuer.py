"""Enqueues jobs of one kind, checked against its handler's signature.

`scripts/generate_sync.py` makes `sync_enqueuer.py` of it, so it goes through a `Database` and awaits nothing else.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from fenceline.client.enqueue_options import EnqueueOptions, encode_options
from fenceline.client.enqueue_tracing import enqueue_span
from fenceline.client.handler_parts import HandlerParts
from fenceline.client.job import Job
from fenceline.database import calls
from fenceline.errors import InvalidOption
from fenceline.runtime.database import GetDatabase

P = ParamSpec("P")
R = TypeVar("R")


class Enqueuer(Generic[P, R]):
    """The enqueue verbs of one kind, with chosen options; made by `@app.job` and `.options()`."""

    __slots__ = ("_get_database", "_options", "_parts")

    def __init__(self, get_database: GetDatabase, parts: HandlerParts, options: EnqueueOptions) -> None:
        self._get_database = get_database
        self._parts = parts
        self._options = options

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Enqueue one job; the arguments are the handler's own.

        Raises InvalidArgs before anything is sent, or what the database refuses (`RefusedError`).
        """
        return await self.enqueue_args(self._parts.arguments.bind(args, kwargs))

    async def enqueue_args(self, args: Mapping[str, Any]) -> Job[R]:
        """Like `enqueue`, with the args as a mapping."""
        parts = self._parts
        values = parts.arguments.validate(args)
        if parts.validate is not None:
            parts.validate(**values)
        options = parts.with_snapshot(self._options, values)
        return await enqueue_one(self._get_database, parts.kind, parts.arguments.dump(values), options, parts)

    async def enqueue_many(
        self, many: Iterable[Mapping[str, Any]], each: Iterable[EnqueueOptions] | None = None
    ) -> list[Job[R]]:
        """Enqueue a job per mapping of args in one statement; handles in order.

        `each`: further options for each job, in the same order:

            await ingest.enqueue_many([{"path": p} for p in paths], each=[{"dedupe_key": p} for p in paths])

        All or none: one bad item raises InvalidArgs and nothing is enqueued.
        """
        arguments, encoded = self._parts.arguments, self._parts.encode_many_args(many)
        own = self._own_options(encoded, each)
        if not encoded:
            return []
        shared, database = self._options, self._get_database()
        if each is None and all(options == own[0] for options in own):
            shared, own = {**shared, **own[0]}, []
        with enqueue_span(arguments.kind, database.tracing, len(encoded)) as trace:
            alone = shared.get("connection") is None
            made = await database.call(
                calls.enqueue.enqueue_many(
                    arguments.kind,
                    encoded,
                    encode_options(shared, trace, is_transaction=True),
                    [encode_options(chosen, is_transaction=alone) for chosen in own] or None,
                    actor=shared.get("actor") or database.actor,
                    defaults=self._parts.defaults,
                    repeatable="idempotency_key" in shared,
                ),
                shared.get("connection"),
            )
        get_database = self._get_database
        return [Job(get_database, job_id, created=created, arguments=arguments) for job_id, created in made]

    def _own_options(self, encoded: list[str], each: Iterable[EnqueueOptions] | None) -> list[EnqueueOptions]:
        """The options of each job on top of the shared ones: those it was given, and its snapshot."""
        own: list[EnqueueOptions] = [{}] * len(encoded) if each is None else list(each)
        if len(own) != len(encoded):
            raise InvalidOption(f"{len(own)} options for {len(encoded)} jobs: give each job its own, {{}} for none")
        if any("connection" in options or "actor" in options for options in own):
            raise InvalidOption("jobs of one call have one connection and one actor: give them to .options()")
        if self._parts.snapshot_provider is None or "snapshot" in self._options:
            return own
        return [self._parts.with_snapshot(options, text) for options, text in zip(own, encoded, strict=True)]


async def enqueue_one(
    get_database: GetDatabase, kind: str, args: str, options: EnqueueOptions, parts: HandlerParts | None = None
) -> Job[Any]:
    """Enqueue one job; its args are JSON text. Without `parts` its handler is not known here."""
    database = get_database()
    with enqueue_span(kind, database.tracing) as trace:
        made = await database.call(
            calls.enqueue.enqueue(
                kind,
                args,
                encode_options(options, trace, is_transaction=True),
                actor=options.get("actor") or database.actor,
                defaults=None if parts is None else parts.defaults,
                repeatable="idempotency_key" in options,
            ),
            options.get("connection"),
        )
    arguments = None if parts is None else parts.arguments
    return Job(get_database, made.job_id, created=made.created, arguments=arguments)
