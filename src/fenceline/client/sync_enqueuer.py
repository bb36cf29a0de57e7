"""The blocking twin of enqueuer.py.

Generated from enqueuer.py by scripts/generate_sync.py: change that file, not this one.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from fenceline.client.arguments import Arguments
from fenceline.client.enqueue_options import EnqueueOptions, encode_options
from fenceline.client.enqueue_tracing import enqueue_span
from fenceline.client.sync_database import GetSyncDatabase
from fenceline.client.sync_job import SyncJob
from fenceline.database import calls
from fenceline.errors import InvalidOption

P = ParamSpec("P")
R = TypeVar("R")


class SyncEnqueuer(Generic[P, R]):
    """The enqueue verbs of one kind, with options already chosen; `@app.job` and `.options()` make them."""

    __slots__ = ("_arguments", "_defaults", "_get_database", "_options", "_snapshot_provider", "_validate")

    def __init__(
        self,
        get_database: GetSyncDatabase,
        arguments: Arguments,
        *,
        defaults: str | None,
        validate: Callable[..., object] | None,
        snapshot_provider: Callable[[], Callable[..., Any] | None],
        options: EnqueueOptions,
    ) -> None:
        self._get_database = get_database
        self._snapshot_provider = snapshot_provider
        self._arguments = arguments
        self._defaults = defaults
        self._validate = validate
        self._options = options

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> SyncJob[R]:
        """Enqueue one job; the arguments are the handler's own.

        Raises InvalidArgs before anything is sent, and the refusals of the state machine (`RefusedError`).
        """
        return self.enqueue_args(self._arguments.bind(args, kwargs))

    def enqueue_args(self, args: Mapping[str, Any]) -> SyncJob[R]:
        """Like `enqueue`, with the args as a mapping."""
        values = self._arguments.validate(args)
        if self._validate is not None:
            self._validate(**values)
        options = self._options
        provider = self._snapshot_provider()
        if provider is not None and "snapshot" not in options:
            options = {**options, "snapshot": provider(**values)}
        database = self._get_database()
        with enqueue_span(self._arguments.kind, database.tracing) as trace:
            made = database.call(
                calls.enqueue.enqueue(
                    self._arguments.kind,
                    self._arguments.dump(values),
                    encode_options(options, trace, is_transaction=True),
                    actor=self._options.get("actor") or database.actor,
                    defaults=self._defaults,
                    repeatable="idempotency_key" in self._options,
                ),
                self._options.get("connection"),
            )
        return SyncJob(self._get_database, made.job_id, created=made.created, arguments=self._arguments)

    def enqueue_many(
        self, many: Iterable[Mapping[str, Any]], each: Iterable[EnqueueOptions] | None = None
    ) -> list[SyncJob[R]]:
        """Enqueue a job per mapping of args in one statement; handles in order.

        `each`: options of each job, in the same order, beside those of all:

            ingest.enqueue_many([{"path": p} for p in paths], each=[{"dedupe_key": p} for p in paths])

        All or none: one bad item raises InvalidArgs and nothing is enqueued.
        """
        encoded = self._arguments.encode_many(many, self._validate)
        own = self._own_options(encoded, each)
        if not encoded:
            return []
        shared, database = self._options, self._get_database()
        if each is None and all(options == own[0] for options in own):
            shared, own = {**shared, **own[0]}, []
        with enqueue_span(self._arguments.kind, database.tracing, len(encoded)) as trace:
            kind, options = self._arguments.kind, encode_options(shared, trace, is_transaction=True)
            actor, defaults = shared.get("actor") or database.actor, self._defaults
            repeatable = "idempotency_key" in shared
            if own:
                alone = shared.get("connection") is None
                texts = [encode_options(chosen, is_transaction=alone) for chosen in own]
                call = calls.enqueue.enqueue_each(
                    kind, encoded, texts, options, actor=actor, defaults=defaults, repeatable=repeatable
                )
            else:
                call = calls.enqueue.enqueue_many(
                    kind, encoded, options, actor=actor, defaults=defaults, repeatable=repeatable
                )
            made = database.call(call, shared.get("connection"))
        get_database, arguments = self._get_database, self._arguments
        return [SyncJob(get_database, job_id, created=created, arguments=arguments) for job_id, created in made]

    def _own_options(self, encoded: list[str], each: Iterable[EnqueueOptions] | None) -> list[EnqueueOptions]:
        """What each job has beside the options of all: what was given, and the snapshot of the configuration."""
        own: list[EnqueueOptions] = [{}] * len(encoded) if each is None else list(each)
        if len(own) != len(encoded):
            raise InvalidOption(f"{len(own)} options for {len(encoded)} jobs: give each job its own, {{}} for none")
        if any("connection" in options or "actor" in options for options in own):
            raise InvalidOption("jobs of one call have one connection and one actor: give them to .options()")
        provider = self._snapshot_provider()
        if provider is None or "snapshot" in self._options:
            return own
        return [
            options if "snapshot" in options else {**options, "snapshot": provider(**self._arguments.decode(text))}
            for options, text in zip(own, encoded, strict=True)
        ]
