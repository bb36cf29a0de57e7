"""What can be done with one job, and how jobs of one kind are enqueued, asynchronously.

The blocking twin, `sync_job_verbs.py`, is generated from this file by `scripts/generate_sync.py`; a test compares them.
So everything here goes through a caller and awaits nothing else.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from fenceline.client.arguments import Arguments
from fenceline.client.caller import CallerOf
from fenceline.client.options import EnqueueOptions, encode_options
from fenceline.client.tracing import enqueue_span
from fenceline.database import calls, context_calls, observe_calls, upkeep_calls
from fenceline.errors import JobCancelled, JobFailed, NotFound, WrongStatus
from fenceline.model.job import JobRecord, LogLine, Outcome, Progress, StepRecord
from fenceline.model.observed import AttemptRecord, JobEvent
from fenceline.model.public_id import format_id
from fenceline.model.status import Status

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Job(Generic[R_co]):
    """A handle to one job: cheap to make, holds no state but the job's id.

    `created` is False when an enqueue returned a job that was there before (dedupe key, idempotency key).
    """

    __slots__ = ("_arguments", "_caller_of", "_known_id", "_ref", "created")

    def __init__(
        self,
        caller_of: CallerOf,
        job_id: int | None,
        *,
        created: bool = True,
        arguments: Arguments | None = None,
        ref: str | None = None,
    ) -> None:
        """`job_id` None: it is still to be enqueued, with its group, where it goes by `ref`."""
        self._caller_of = caller_of
        self._known_id = job_id
        self._ref = ref
        self._arguments = arguments
        self.created = created

    @property
    def id(self) -> str:
        """The public id, as people and other systems see it; in the block of a group, the job's name there."""
        return f"@{self._ref}" if self._known_id is None else format_id(self._known_id)

    @property
    def _job_id(self) -> int:
        if self._known_id is None:
            raise WrongStatus("the job is enqueued when the block of its group ends: it has no id before")
        return self._known_id

    def settle(self, job_id: int, *, created: bool) -> None:
        """The group's block has ended, and the job is there."""
        self._known_id = job_id
        self.created = created

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    async def get(self) -> JobRecord:
        """Everything that is known of the job now. Raises NotFound."""
        record = await self._caller_of().call(calls.get_job(self._job_id))
        if record is None:
            raise NotFound(f"job {self.id} does not exist")
        return record

    async def status(self) -> Status:
        """The job's status now. Raises NotFound."""
        return (await self.get()).status

    async def wait(self, timeout: float | None = None) -> Status:
        """Wait until the job has ended, and return how. Raises TimeoutError, NotFound."""
        return (await self._outcome(timeout)).status

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait until the job has ended and return its result, as the type its handler declares.

        Raises JobFailed or JobCancelled when there is none, TimeoutError, NotFound.
        """
        outcome = await self._outcome(timeout)
        if not outcome.status.is_success:
            error = outcome.error or {}
            kind = JobFailed if outcome.status is Status.FAILED else JobCancelled
            raise kind(
                f"job {self.id} {outcome.status}: {error.get('message', 'no reason given')}",
                error=outcome.error,
            )
        if self._arguments is None:
            return outcome.result  # type: ignore[no-any-return]  # by name: the result is whatever JSON it is
        return self._arguments.decode_result(outcome.result)  # type: ignore[no-any-return]  # checked by pydantic

    async def cancel(
        self,
        reason: str | None = None,
        *,
        force: bool = False,
        grace_seconds: float | None = None,
        actor: str | None = None,
    ) -> Status:
        """Cancel the job: at once if no worker holds it, else by asking the handler to stop within the grace period.

        With `force` the fence is rotated at once. Returns the status afterwards; raises WrongStatus when it is over.
        """
        return await self._caller_of().call(
            calls.cancel_job(self._job_id, actor=actor, reason=reason, force=force, grace_seconds=grace_seconds)
        )

    async def approve(self, reason: str | None = None, *, actor: str | None = None) -> Status:
        """Let a job go on that awaits approval. Raises WrongStatus."""
        return await self._caller_of().call(calls.approve_job(self._job_id, actor=actor, reason=reason))

    async def reject(self, reason: str | None = None, *, actor: str | None = None) -> Status:
        """End a job that awaits approval. Raises WrongStatus."""
        return await self._caller_of().call(calls.reject_job(self._job_id, actor=actor, reason=reason))

    async def retry(self, *, actor: str | None = None) -> "Job[R_co]":
        """Run a finished job again, as a new job with the same args and snapshot. Raises WrongStatus."""
        job_id = await self._caller_of().call(calls.retry_job(self._job_id, actor=actor))
        return Job(self._caller_of, job_id, arguments=self._arguments)

    async def reprioritise(self, priority: int, *, actor: str | None = None) -> int:
        """Change the priority of a job that no worker holds; returns the one it had. Raises WrongStatus."""
        return await self._caller_of().call(calls.reprioritise_job(self._job_id, priority, actor=actor))

    async def delete(self, *, actor: str | None = None) -> None:
        """Forget a finished job and all that is kept of it. Raises WrongStatus."""
        await self._caller_of().call(calls.delete_job(self._job_id, actor=actor))

    async def erase_args(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Replace the args of a finished job by a marker; it cannot be retried afterwards. Raises WrongStatus."""
        await self._caller_of().call(upkeep_calls.erase_args(self._job_id, actor=actor, reason=reason))

    async def logs(self, *, after: LogLine | None = None, limit: int = 1000) -> list[LogLine]:
        """Log lines of all attempts in order, after a given one."""
        place = (0, 0) if after is None else (after.token, after.line)
        return await self._caller_of().call(calls.read_log(self._job_id, place, limit))

    async def attempts(self) -> list[AttemptRecord]:
        """Every attempt of the job, the live one included, first to last."""
        return await self._caller_of().call(observe_calls.list_attempts(self._job_id))

    async def events(self) -> list[JobEvent]:
        """What happened to the job, first to last, and who did it: workers and people."""
        return await self._caller_of().call(observe_calls.job_events(self._job_id))

    async def steps(self) -> list[StepRecord]:
        """The job's steps in order: done, failed, and listed but still to come. Raises NotFound."""
        return await self._caller_of().call(context_calls.list_steps(self._job_id))

    async def progress(self) -> Progress:
        """The phase and progress that the handler last reported."""
        record = await self.get()
        return Progress(phase=record.phase, progress=record.progress)

    async def _outcome(self, timeout: float | None) -> Outcome:
        outcome = await self._caller_of().wait(self._job_id, timeout)
        if outcome is None:
            raise NotFound(f"job {self.id} does not exist")
        return outcome


class Enqueuer(Generic[P, R]):
    """The enqueue verbs of one kind, with options already chosen; `@app.job` and `.options()` make them."""

    __slots__ = ("_arguments", "_caller_of", "_defaults", "_options", "_snapshot_provider", "_validate")

    def __init__(
        self,
        caller_of: CallerOf,
        arguments: Arguments,
        *,
        defaults: str | None,
        validate: Callable[..., object] | None,
        snapshot_provider: Callable[[], Callable[..., Any] | None],
        options: EnqueueOptions,
    ) -> None:
        self._caller_of = caller_of
        self._snapshot_provider = snapshot_provider
        self._arguments = arguments
        self._defaults = defaults
        self._validate = validate
        self._options = options

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Enqueue one job; the arguments are the handler's own.

        Raises InvalidArgs before anything is sent, and the refusals of the state machine (`RefusedError`).
        """
        return await self.enqueue_args(self._arguments.bind(args, kwargs))

    async def enqueue_args(self, args: Mapping[str, Any]) -> Job[R]:
        """Like `enqueue`, with the args as a mapping."""
        values = self._arguments.validate(args)
        if self._validate is not None:
            self._validate(**values)
        options = self._options
        provider = self._snapshot_provider()
        if provider is not None and "snapshot" not in options:
            options = {**options, "snapshot": provider(**values)}
        caller = self._caller_of()
        with enqueue_span(self._arguments.kind, caller.tracing) as trace:
            made = await caller.call(
                calls.enqueue(
                    self._arguments.kind,
                    self._arguments.dump(values),
                    encode_options(options, trace),
                    actor=None,
                    defaults=self._defaults,
                    repeatable="idempotency_key" in self._options,
                ),
                self._options.get("connection"),
            )
        return Job(self._caller_of, made.job_id, created=made.created, arguments=self._arguments)

    async def enqueue_many(self, many: Iterable[Mapping[str, Any]]) -> list[Job[R]]:
        """Enqueue a job per mapping of args, all with the same options, in one statement; handles in order.

        All or none: one bad item raises InvalidArgs and nothing is enqueued.
        """
        encoded = self._arguments.encode_many(many, self._validate)
        if not encoded:
            return []
        caller = self._caller_of()
        with enqueue_span(self._arguments.kind, caller.tracing, len(encoded)) as trace:
            provider = self._snapshot_provider()
            if provider is None or "snapshot" in self._options:
                options = [encode_options(self._options, trace)]
            else:
                options = [self._options_with_snapshot(provider, text, trace) for text in encoded]
            if len(set(options)) == 1:
                call = calls.enqueue_many(
                    self._arguments.kind,
                    encoded,
                    options[0],
                    actor=None,
                    defaults=self._defaults,
                    repeatable="idempotency_key" in self._options,
                )
            else:
                call = calls.enqueue_jobs(self._specs(encoded, options), actor=None)
            made = await caller.call(call, self._options.get("connection"))
        caller_of, arguments = self._caller_of, self._arguments
        return [Job(caller_of, job_id, created=created, arguments=arguments) for job_id, created in made]

    def _options_with_snapshot(self, provider: Callable[..., Any], args: str, trace: str | None) -> str:
        options: EnqueueOptions = {**self._options, "snapshot": provider(**self._arguments.decode(args))}
        return encode_options(options, trace)

    def _specs(self, encoded: list[str], options: list[str]) -> list[dict[str, Any]]:
        """Each job has options of its own, and a key of its own for the same enqueue sent again."""
        specs = [
            calls.job_spec(self._arguments.kind, text, own, self._defaults)
            for text, own in zip(encoded, options, strict=True)
        ]
        if "idempotency_key" in self._options:
            for number, spec in enumerate(specs, start=1):
                spec["idempotency_key"] += f"#{number}"
        return specs
