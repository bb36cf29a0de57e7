"""What an async handler knows and can do while it runs."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload
from uuid import UUID

from fenceline.client.arguments import to_json
from fenceline.client.job_verbs import Job
from fenceline.client.options import EnqueueOptions
from fenceline.context.attempt import Attempt, Parent, Report, Request, Start
from fenceline.context.children import add_children
from fenceline.context.failure import message_of
from fenceline.context.guards import version_text
from fenceline.context.items import Items
from fenceline.context.lines import Lines
from fenceline.context.locks import hold
from fenceline.context.secrets import Credentials, Redactor, redact
from fenceline.context.steps import Step, Steps, names_of_uses
from fenceline.context.transaction import Transaction, TransactionConnection
from fenceline.errors import Cancelled, InvalidOption, InvalidResult, StaleAttempt, Superseded, TooLarge
from fenceline.model.json_text import stored_json

if TYPE_CHECKING:
    from fenceline.client.app import Fenceline
    from fenceline.client.handler import Handler
    from fenceline.context.desk import Desk

P = ParamSpec("P")
T = TypeVar("T")

#: Progress that comes quicker than this is written with the next report.
PROGRESS_SECONDS = 0.25
#: Characters of progress, as JSON; items have the room of a result.
MAX_PROGRESS = 65_536


class Context:
    """Handed to handlers that have a parameter `ctx`.

    `attempt_id` is the fence and `token` the fencing token of this attempt: give the token to outside systems that can
    refuse an older one. Every awaited call raises `Cancelled` when the job was asked to stop, once: a handler that
    catches it may still save what it has. Steps, phases, locks and children are refused from then on.
    """

    __slots__ = (
        "_app",
        "_attempt",
        "_cancelled",
        "_credentials",
        "_items",
        "_phase",
        "_progress",
        "_progress_at",
        "_reporting",
        "_start",
        "_steps",
        "_told",
        "desk",
        "is_ending",
        "lines",
        "on_stale",
        "redactor",
        "shutting_down",
        "transaction_done",
    )

    def __init__(self, attempt: Attempt, desk: "Desk", app: "Fenceline | None" = None) -> None:
        self._attempt = attempt
        self._app = app
        self.desk = desk
        self.lines = Lines()
        self.on_stale: Callable[[UUID], None] | None = None
        #: Whether the worker is about to stop: no step begins any more, all else may still end within the grace period.
        self.shutting_down = False
        self.is_ending = False  # a transaction of the handler's is about to end the attempt: that it is gone is no news
        self.transaction_done: Transaction | None = None  # the attempt has ended in a transaction of the handler's
        self._cancelled = False
        self._told = False
        self._phase: str | None = None
        self._progress: dict[str, Any] | None = None  # waits to be written
        self._progress_at = 0.0
        self._reporting: asyncio.Future[None] | None = None
        self._start: Start | None = None
        self._steps: Steps | None = None
        self._items: Items | None = None
        self._credentials: Credentials | None = None
        self.redactor: Redactor | None = None

    # What it is about ------------------------------------------------------------------------------------------------

    @property
    def job(self) -> Request:
        """The job: its public id, with the facts of the request (kind, tenant, labels, snapshot …) as attributes."""
        return Request(self._attempt)

    @property
    def job_id(self) -> int:
        return self._attempt.job_id

    @property
    def kind(self) -> str:
        return self._attempt.kind

    @property
    def tenant(self) -> str:
        return self._attempt.tenant

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._attempt.number

    @property
    def attempt_id(self) -> UUID:
        return self._attempt.attempt_id

    @property
    def token(self) -> int:
        return self._attempt.token

    @property
    def traceparent(self) -> str | None:
        """The trace context of the enqueue, as W3C writes it, if it had one."""
        found = self._attempt.details.get("traceparent")
        return found if isinstance(found, str) else None

    @property
    def parents(self) -> list[Parent]:
        """The jobs that this one waited for (`after=`), with how they ended and what they returned."""
        return [] if self._start is None else self._start.parents

    @property
    def resume(self) -> Any:
        """What `checkpoint` last kept, by an earlier attempt or by the job that this one retries; None at first."""
        return None if self._start is None else self._start.checkpoint

    @property
    def credentials(self) -> Credentials:
        """Temporary credentials for the job's `identity`, fetched just before this attempt. Raises InvalidOption."""
        if self._credentials is None:
            raise InvalidOption(
                f"job {self.job} has no identity, or the app has no credential provider: enqueue it with identity=, "
                "and give the app one with Fenceline(credentials=…)"
            )
        return self._credentials

    # Stopping --------------------------------------------------------------------------------------------------------

    @property
    def cancelled(self) -> bool:
        """Whether the job was asked to stop. It may still keep what it has done, until its grace period is over."""
        return self._cancelled

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` when the job was asked to stop."""
        if self._cancelled:
            self._told = True
            raise Cancelled("the job was asked to stop")

    def request_cancel(self) -> None:
        self._cancelled = True

    def check(self, *, starts_work: bool) -> None:
        if self.transaction_done is not None:
            raise StaleAttempt("the attempt has ended with its transaction: nothing can be written any more")
        if self._cancelled and (starts_work or not self._told):
            self.raise_if_cancelled()

    async def ask(self, operation: str, values: dict[str, Any], *, starts_work: bool = False) -> Any:
        """Carry out an operation of the state machine for this attempt, unless the job was asked to stop."""
        self.check(starts_work=starts_work)
        return await self._ask(operation, values)

    async def _ask(self, operation: str, values: dict[str, Any]) -> Any:
        if self.redactor is not None:
            values = self.redactor.in_values(values)
        try:
            return await self.desk.ask(self.job_id, self.attempt_id, operation, values)
        except StaleAttempt:
            await self.tell_stale()
            raise

    async def tell_stale(self) -> None:
        """Tell whoever runs the handler that its attempt is gone."""
        if self.on_stale is not None:
            self.on_stale(self.attempt_id)

    # Log and progress ------------------------------------------------------------------------------------------------

    def log(self, message: str, /, *, level: str = "info", **fields: Any) -> None:
        """Add a line to the job's log; it is written within a second, in order. Very long lines are cut and say so."""
        self.add_line(str(message), level, fields or None)

    def add_line(self, message: str, level: str, fields: Mapping[str, Any] | None) -> None:
        if self.redactor is not None:
            message, fields = self.redactor.in_line(message, fields)
        self.lines.add(message, level, fields)

    def phase(self, name: str) -> "Phase":
        """Begin a phase, with empty progress: `async with ctx.phase("inventory"):`, or just `await` it."""
        return Phase(self, name)

    async def progress(
        self,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        **more: Any,
    ) -> None:
        """Say how far the work is. What comes in quick succession is written together, the last one counts."""
        self.check(starts_work=False)
        said = {"done": done, "total": total, "message": message, **more}
        progress = {name: value for name, value in said.items() if value is not None}
        if self.redactor is not None:
            progress = self.redactor.in_fields(progress)
        text = stored_json(progress)
        if len(text) > MAX_PROGRESS:
            raise TooLarge(f"the progress has {len(text)} characters: at most {MAX_PROGRESS} are allowed")
        if time.monotonic() - self._progress_at < PROGRESS_SECONDS:
            self.keep_progress(progress)
            return
        self._progress_at = time.monotonic()
        await self._set_progress({"progress": text})

    def keep_progress(self, progress: dict[str, Any] | None) -> None:
        """Leave progress to the next report."""
        self._progress = progress

    async def begin_phase(self, name: str) -> None:
        await self._set_progress({"phase": name, "progress": "{}"}, starts_work=True)
        self._phase = name
        self._progress_at = 0.0  # its first progress is shown at once

    async def _set_progress(self, values: dict[str, Any], *, starts_work: bool = False) -> None:
        self.check(starts_work=starts_work)
        self._progress = None  # older than what is written now
        if not await self._ask("set_progress", values):
            await self.tell_stale()
            raise StaleAttempt(f"the attempt of job {self.job} is gone")

    @property
    def items(self) -> Items:
        """The items that the handler works through: `start`, `complete`, `skip` and `fail` move them."""
        if self._items is None:
            self._items = Items(self._move_items, lambda: self._phase)
        return self._items

    async def _move_items(self, to: str, items: list[str], why: str | None) -> dict[str, int]:
        counts: dict[str, int] = await self.ask("move_items", {"to": to, "items": items, "why": why})
        return counts

    @property
    def collected_errors(self) -> list[dict[str, Any]]:
        return [] if self._items is None else self._items.errors

    @property
    def has_report(self) -> bool:
        return bool(self.lines) or self._progress is not None

    def take_report(self) -> Report:
        """What waits to be written."""
        progress, self._progress = self._progress, None
        return Report(self.lines.take(), None if progress is None else {"progress": progress})

    def begin_report(self) -> Report:
        """As `take_report`, for somebody who calls `end_report` when it is written: `flush` waits for that."""
        self._reporting = asyncio.get_running_loop().create_future()
        return self.take_report()

    def end_report(self) -> None:
        if self._reporting is not None:
            self._reporting.set_result(None)
            self._reporting = None

    async def flush(self) -> None:
        """Write what waits to be written now; then all of it is written, also what was on its way already."""
        if self._reporting is not None:
            await asyncio.wait([self._reporting])
        if self.has_report:
            await self.desk.report(self.job_id, self.attempt_id, self.take_report())

    # Durable work ----------------------------------------------------------------------------------------------------

    @overload
    async def step(self, name: str, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    async def step(self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function once, whatever happens to this attempt: its result is kept, and a later attempt, or a retry as
        a new job, gets that instead of running it again.

        The result is JSON, read back as the type that the function declares. Used again, as in a loop, a name counts
        on: `load`, `load#2`. Before a step runs, the job's cancel and the worker's shutdown are heeded. Raises
        StepMismatch when the step was done with other arguments, InvalidResult, TooLarge.
        """
        step = self.begin_step(name, function, args, kwargs)
        if not step.is_done:
            try:
                value = function(*args, **kwargs)
                if isinstance(value, Awaitable):
                    value = await value
                await self.step_done(step, value)
            except Exception as error:
                await self.step_failed(step, error)
                raise
        return step.decode()

    def begin_step(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Step:
        self.check(starts_work=True)
        if self.shutting_down:
            raise Cancelled("the worker is shutting down")
        if self._steps is None:
            self._steps = Steps({} if self._start is None else self._start.steps)
        return self._steps.begin(name, function, args, kwargs)

    async def step_done(self, step: Step, value: Any) -> None:
        result = step.encode(value)
        if self.redactor is not None and result is not None:
            result = self.redactor.in_text(result)
        values = {
            "name": step.name,
            "args_hash": step.args_hash,
            "result": result,
            "ran_seconds": step.ran_seconds,
        }
        await self._ask("record_step", values)  # it has run: that is kept even if the job was asked to stop meanwhile
        step.finish(result)

    async def step_failed(self, step: Step, error: Exception) -> None:
        """Keep why a step failed, for people; the error itself goes on its way."""
        if isinstance(error, Cancelled | StaleAttempt):
            return
        why = stored_json({"message": redact(message_of(error))[:2000], "type": type(error).__qualname__})
        values = {"name": step.name, "args_hash": step.args_hash, "error": why, "ran_seconds": step.ran_seconds}
        await self._ask("record_step", values)

    async def list_steps(self, *names: str) -> None:
        """Name the steps to come, so that people see them before they run: the ordered actions of a job. A name given
        twice stands for two uses of it, as in `step`.
        """
        await self.ask("list_steps_ahead", {"names": names_of_uses(names)})

    async def checkpoint(self, state: Any) -> None:
        """Keep a state (JSON) from which the next attempt, or a retry as a new job, can go on: see `resume`."""
        try:
            text = to_json(state)
        except ValueError as error:
            raise InvalidResult(f"the checkpoint cannot be kept as JSON: {error}") from error
        await self.ask("save_checkpoint", {"state": text})

    # Others ----------------------------------------------------------------------------------------------------------

    def lock(self, namespace: str, id: str | int) -> AbstractAsyncContextManager[None]:  # noqa: A002 - the public name
        """Hold a named lock for a block: waits for its turn, ends with the block or with the attempt.

            async with ctx.lock("edition", 42): ...

        Raises LockCycle when jobs would wait for each other for ever, InvalidName.
        """
        return hold(self, namespace, str(id))

    async def release(self, owner: str) -> None:
        await self.desk.ask(self.job_id, self.attempt_id, "release_lock", {"owner": owner})

    async def guard_newer(self, resource: str, version: float | Decimal | datetime) -> bool:
        """Announce that this job is about to write a version of a resource; True: go on.

        Raises Superseded when a newer version was announced before, by whatever job, even one that has failed since.
        Uncaught, that ends the job as `cancelled`, code `superseded`. Call it where no newer one can come between: in
        a `lock` of the resource, say. A datetime needs a timezone.
        """
        values = {"resource": resource, "version": version_text(version)}
        if not await self.ask("guard_newer", values, starts_work=True):
            raise Superseded(f"a newer version of {resource!r} than {version} was announced before")
        return True

    async def enqueue(
        self,
        kind: "str | Handler[Any, Any]",
        args: Mapping[str, Any] | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Job[Any]:
        """Make a child job when this attempt succeeds, in the same transaction; if it does not, there is no child.

        The handle's id is final; it can be given to `after=` of another child. With a dedupe key or an idempotency key
        that belongs to another job by then, that job is the one, also for children that wait for it, and there is none
        with this id.
        """
        [child] = await self.enqueue_many(kind, [{} if args is None else args], **options)
        return child

    async def enqueue_many(
        self,
        kind: "str | Handler[Any, Any]",
        many: Iterable[Mapping[str, Any]],
        **options: Unpack[EnqueueOptions],
    ) -> list[Job[Any]]:
        """`enqueue` for many args at once."""
        return await add_children(self, kind, many, options)

    def transaction(self, connection: Any = None) -> AbstractAsyncContextManager[TransactionConnection]:
        """End the job in a transaction of your own: what you write in the block and the job's end commit together.

            async with ctx.transaction() as conn:
                await conn.execute("insert into …")
                conn.result = {"rows": 1}

        An attempt that lost its claim rolls all of it back (StaleAttempt). `connection`: one of your own, or a session
        (asyncpg, psycopg, SQLAlchemy), which is committed; else it is one of asyncpg, of the app's own. After the block
        the job is done: nothing can be written any more, and what the handler returns or raises does not count.
        """
        self.check(starts_work=True)
        return Transaction(self).open(connection)

    # For those who run it --------------------------------------------------------------------------------------------

    @property
    def app(self) -> "Fenceline | None":
        return self._app

    @property
    def attempt_record(self) -> Attempt:
        return self._attempt

    def set_ending(self, *, is_ending: bool) -> None:
        self.is_ending = is_ending

    def start_with(self, start: Start) -> None:
        self._start = start

    def use_credentials(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self.redactor = Redactor(credentials)

    def redact(self, text: str | None) -> str | None:
        """JSON text without the credentials of this attempt."""
        return text if text is None or self.redactor is None else self.redactor.in_text(text)


class Phase:
    """`async with ctx.phase(name):` or `await ctx.phase(name)`."""

    def __init__(self, context: Context, name: str) -> None:
        self._context = context
        self._name = name

    def __await__(self) -> Any:
        return self._context.begin_phase(self._name).__await__()

    async def __aenter__(self) -> None:
        await self._context.begin_phase(self._name)

    async def __aexit__(self, *_error: object) -> None:
        """The phase stays on show until the next one begins."""
