"""Jobs that belong together: enqueued together, waited for together."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack
from uuid import uuid4

from fenceline.client.arguments import encode_plain
from fenceline.client.caller import CallerOf
from fenceline.client.options import EnqueueOptions, encode_options
from fenceline.client.verbs import Job
from fenceline.database import calls
from fenceline.errors import EmptyGroup, InvalidOption
from fenceline.model.status import Status

if TYPE_CHECKING:
    from fenceline.client.app import Handler


class Group:
    """Collects jobs in a block and enqueues them in one statement when it ends: all of them, or none.

        async with app.group() as g:
            for part in parts:
                await g.enqueue(subtask, {"part": part})
            await g.then(synthesize, policy="always")      # runs when all of them have ended

    If the block raises, nothing is enqueued. Handles have their ids after the block; inside, they can be named in
    `after=`. A job that is enqueued later waits for the whole group with `after={"group": g.name}`.
    """

    def __init__(
        self,
        caller_of: CallerOf,
        handlers: "Mapping[str, Handler[Any, Any]]",
        name: str | None = None,
        *,
        tenant: str | None = None,
    ) -> None:
        self.name = name or f"group-{uuid4()}"
        self.jobs: list[Job[Any]] = []
        self.following: list[Job[Any]] = []
        self._caller_of = caller_of
        self._handlers = handlers
        self._tenant = tenant
        self._specs: list[tuple[Job[Any], dict[str, Any]]] = []
        self._followers: list[tuple[Job[Any], dict[str, Any]]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        if not self._specs:
            raise EmptyGroup(f"group {self.name!r} has no jobs: enqueue at least one in its block")
        collected = [*self._specs, *self._followers]
        specs = [spec for _job, spec in collected]
        made = await self._caller_of().call(calls.enqueue_jobs(specs, actor=None))
        for (job, _spec), (job_id, created) in zip(collected, made, strict=True):
            job.settle(job_id, created=created)
        self._specs, self._followers = [], []

    async def enqueue(
        self,
        kind: "str | Handler[Any, Any]",
        args: Mapping[str, Any] | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Job[Any]:
        """Add a job to the group. Raises InvalidArgs, InvalidOption."""
        job, spec = self._make(kind, args, options, f"j{len(self._specs)}")
        spec["group"] = self.name
        self._specs.append((job, spec))
        self.jobs.append(job)
        return job

    async def enqueue_many(
        self,
        kind: "str | Handler[Any, Any]",
        many: Sequence[Mapping[str, Any]],
        **options: Unpack[EnqueueOptions],
    ) -> list[Job[Any]]:
        """Add a job per mapping of args."""
        return [await self.enqueue(kind, args, **options) for args in many]

    async def then(
        self,
        kind: "str | Handler[Any, Any]",
        args: Mapping[str, Any] | None = None,
        *,
        policy: Literal["success", "always"] = "success",
        **options: Unpack[EnqueueOptions],
    ) -> Job[Any]:
        """Add a job that runs when all jobs of the group have ended; `ctx.parents` tells it how.

        `policy`: "success" cancels it as soon as one of them fails, "always" runs it whatever became of them.
        """
        if "after" in options:
            raise InvalidOption("a job that follows a group waits for the group: after= has no place here")
        job, spec = self._make(kind, args, options, f"f{len(self._followers)}")
        spec["after"] = {"group": self.name, "policy": policy}
        self._followers.append((job, spec))
        self.following.append(job)
        return job

    async def wait(self, timeout: float | None = None) -> list[Status]:
        """Wait until every job of the group has ended, and return how, in their order. Raises TimeoutError."""
        return [await job.wait(timeout) for job in self.jobs]

    def _make(
        self, kind: "str | Handler[Any, Any]", args: Mapping[str, Any] | None, options: EnqueueOptions, ref: str
    ) -> tuple[Job[Any], dict[str, Any]]:
        handler = self._handlers.get(kind) if isinstance(kind, str) else kind
        name = kind if isinstance(kind, str) else kind.kind
        if "connection" in options:
            raise InvalidOption("the jobs of a group are enqueued together: connection= has no place here")
        if self._tenant is not None:
            options = {"tenant": self._tenant, **options}
        given = {} if args is None else args
        text = encode_plain(name, given) if handler is None else handler.encode_many_args([given])[0]
        defaults = None if handler is None else handler.defaults
        arguments = None if handler is None else handler.arguments
        return (
            Job(self._caller_of, None, arguments=arguments, ref=ref),
            calls.job_spec(name, text, encode_options(options), defaults, ref=ref),
        )
