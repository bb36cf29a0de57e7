"""Jobs that belong together: enqueued together, waited for together."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack
from uuid import uuid4

from typing_extensions import TypeVar

from fenceline.client.arguments import encode_plain
from fenceline.client.enqueue_options import EnqueueOptions, encode_options
from fenceline.client.handler_parts import handler_parts
from fenceline.client.job import Job
from fenceline.database import calls
from fenceline.errors import EmptyGroup, InvalidOption, NotFound
from fenceline.model.public_id import parse_id
from fenceline.model.status import Status
from fenceline.runtime.database import GetDatabase

if TYPE_CHECKING:
    from fenceline.client.handler import Handler

R = TypeVar("R", default=Any)


class Group:
    """Collects jobs in a block and enqueues them in one statement when it ends: all of them, or none.

        async with app.group() as g:
            for part in parts:
                await g.enqueue(subtask, {"part": part})
            await g.then(synthesize, policy="always")      # runs when all of them have ended

    If the block raises, nothing is enqueued. Handles get their ids when the block ends; inside it, they can be used in
    `after=`. A job that is enqueued later can wait for the whole group with `after={"group": g.name}`.
    """

    def __init__(
        self,
        get_database: GetDatabase,
        handlers: "Mapping[str, Handler[..., Any]]",
        name: str | None = None,
        *,
        tenant: str | None = None,
        actor: str | None = None,
        connection: Any = None,
    ) -> None:
        self.name = name or f"group-{uuid4()}"
        self.jobs: list[Job[Any]] = []
        self.following: list[Job[Any]] = []
        self._get_database = get_database
        self._handlers = handlers
        self._tenant = tenant
        self._actor = actor
        self._connection = connection
        self._specs: list[tuple[Job[Any], dict[str, Any]]] = []
        self._followers: list[tuple[Job[Any], dict[str, Any]]] = []
        self._is_over = False

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
        database = self._get_database()
        made = await database.call(
            calls.enqueue.enqueue_jobs(specs, actor=self._actor or database.actor), self._connection
        )
        for (job, _spec), (job_id, created) in zip(collected, made, strict=True):
            job._enqueued(job_id, created=created)  # noqa: SLF001 - made by this group
        self._specs, self._followers = [], []
        self._is_over = True

    async def enqueue(
        self, kind: "str | Handler[..., R]", args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[R]:
        """Add a job to the group. Raises InvalidArgs, InvalidOption."""
        job, spec = self._make(kind, args, options, f"j{len(self._specs)}")
        spec["group"] = self.name
        self._specs.append((job, spec))
        self.jobs.append(job)
        return job

    async def enqueue_many(
        self, kind: "str | Handler[..., R]", many: Sequence[Mapping[str, Any]], **options: Unpack[EnqueueOptions]
    ) -> list[Job[R]]:
        """Add a job per mapping of args."""
        return [await self.enqueue(kind, args, **options) for args in many]

    async def then(
        self,
        kind: "str | Handler[..., R]",
        args: Mapping[str, Any] | None = None,
        *,
        policy: Literal["success", "always"] = "success",
        **options: Unpack[EnqueueOptions],
    ) -> Job[R]:
        """Add a job that runs when all jobs of the group have ended; `ctx.parents` tells it how.

        `policy`: "success" cancels it as soon as one of them fails, "always" runs it however they ended.
        """
        if "after" in options:
            raise InvalidOption("after= cannot be used here: a job that follows a group waits for the group")
        job, spec = self._make(kind, args, options, f"f{len(self._followers)}")
        spec["after"] = {"group": self.name, "policy": policy}
        self._followers.append((job, spec))
        self.following.append(job)
        return job

    async def wait(self, timeout: float | None = None) -> list[Status]:
        """Wait until every job of the group has ended, and return how, in their order.

        Does not wait for those that follow it. Raises TimeoutError, NotFound.
        """
        ids = [parse_id(job.id) for job in self.jobs]
        outcomes = await self._get_database().wait_all(ids, timeout)
        missing = [job.id for job, outcome in zip(self.jobs, outcomes, strict=True) if outcome is None]
        if missing:
            raise NotFound(f"job {missing[0]} of group {self.name!r} does not exist any more")
        return [outcome.status for outcome in outcomes if outcome is not None]

    def _make(
        self, kind: "str | Handler[..., Any]", args: Mapping[str, Any] | None, options: EnqueueOptions, ref: str
    ) -> tuple[Job[Any], dict[str, Any]]:
        if self._is_over:
            raise InvalidOption(f"the block of group {self.name!r} has ended: a job can only follow it, with after=")
        for name in options.keys() & {"connection", "actor"}:
            raise InvalidOption(f"the jobs of a group are enqueued together: give the {name} to app.group()")
        if options.get("tenant", self._tenant) != self._tenant:
            raise InvalidOption("the jobs of a group belong to one tenant: name it in app.group(tenant=…)")
        if options.get("after") is self:
            raise InvalidOption("a job of a group cannot wait for the group itself: use then()")
        if self._tenant is not None:
            options = {**options, "tenant": self._tenant}
        handler = self._handlers.get(kind) if isinstance(kind, str) else kind
        if handler is None:
            spec = calls.enqueue.job_spec(
                str(kind), encode_plain(str(kind), args), encode_options(options), None, ref=ref
            )
            return Job(self._get_database, None, ref=ref), spec
        parts = handler_parts(handler)
        text = parts.encode_args({} if args is None else args)
        chosen = encode_options(parts.with_snapshot(options, text))
        name = kind if isinstance(kind, str) else kind.kind
        spec = calls.enqueue.job_spec(name, text, chosen, parts.defaults, ref=ref)
        return Job(self._get_database, None, arguments=parts.arguments, ref=ref), spec
