"""What an async handler knows and can do while it runs."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ParamSpec, Unpack, overload

from typing_extensions import TypeVar

from fenceline.client.arguments import to_json
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.job import Job
from fenceline.context import waits
from fenceline.context.attempt_facts import AttemptFacts
from fenceline.context.children import add_children
from fenceline.context.guards import must_be_newest, version_text
from fenceline.context.items import Items
from fenceline.context.lock_blocks import hold
from fenceline.context.steps import names_of_uses
from fenceline.context.transaction import Transaction, TransactionConnection
from fenceline.database import calls
from fenceline.errors import InvalidResult
from fenceline.runtime import connections

if TYPE_CHECKING:
    from fenceline.client.handler import Handler
    from fenceline.context.session import Session

P = ParamSpec("P")
T = TypeVar("T")
#: A kind that is only named returns anything.
R = TypeVar("R", default=Any)


class Context(AttemptFacts):
    """Handed to handlers that have a parameter `ctx`.

    `attempt_id` is the fence and `token` the fencing token of this attempt: give the token to outside systems that can
    refuse an older one. Every awaited call raises `Cancelled` when the job was asked to stop, once: a handler that
    catches it may still save what it has. Steps, phases, locks and children are refused from then on.
    """

    __slots__ = ()

    # Log and progress ------------------------------------------------------------------------------------------------

    def phase(self, name: str) -> "Phase":
        """Begin a phase, with empty progress: `async with ctx.phase("inventory"):`, or just `await` it."""
        return Phase(self._session, name)

    async def progress(
        self,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        **fields: Any,
    ) -> None:
        """Say how far the work is. What comes in quick succession is written together, the last one counts."""
        await self._session.show_progress({"done": done, "total": total, "message": message, **fields})

    @property
    def items(self) -> Items:
        """The items that the handler works through: `start`, `complete`, `skip` and `fail` move them."""
        return self._session.items

    async def flush(self) -> None:
        """Write log lines and progress now: when it returns, all of them are in the database."""
        await self._session.flush()

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
        step = self._session.begin_step(name, function, args, kwargs)
        if not step.is_done:
            try:
                with self._session.step_span(step):
                    value = function(*args, **kwargs)
                    if isinstance(value, Awaitable):
                        value = await value
                await self._session.step_done(step, value)
            except Exception as error:
                await self._session.step_failed(step, error)
                raise
        return step.decode()

    async def list_steps(self, *names: str) -> None:
        """Name the steps to come, so that people see them before they run: the ordered actions of a job. A name given
        twice stands for two uses of it, as in `step`.
        """
        await self._session.execute("list_steps_ahead", {"names": names_of_uses(names)})

    async def checkpoint(self, state: Any) -> None:
        """Keep a state (JSON) from which the next attempt, or a retry as a new job, can go on: see `resume`."""
        try:
            text = to_json(state)
        except ValueError as error:
            raise InvalidResult(f"the checkpoint cannot be kept as JSON: {error}") from error
        await self._session.execute("save_checkpoint", {"state": text})

    # Waiting ---------------------------------------------------------------------------------------------------------

    async def sleep(
        self, seconds: float | timedelta = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Wait without holding a slot: the attempt ends, and the handler runs again when the time has come.

            await ctx.sleep(hours=3)  # seconds, minutes, hours and days add up

        Finished steps are not repeated, but the other code before the wait is. A wait uses up no attempt, and
        `jobs run-now` ends it. Locks of `lock` are released; keys and resource locks are kept.
        """
        duration = waits.sleep_seconds(seconds, minutes, hours, days)
        waits.conclude(await waits.begin(self._session, "sleep", None, duration), None, duration)

    async def wait_for(self, signal: str, *, timeout: float | timedelta | None = None) -> Any:
        """Wait for a signal (`job.signal`) without holding a slot, as `sleep` does; its payload.

            answer = await ctx.wait_for("agent-returned", timeout=86_400)

        A signal that came before is kept, and each is taken by one wait, in the order in which they came. A retry, also
        as a new job, keeps what was taken. Raises TimeoutError when none came within the time, InvalidName.
        """
        seconds = None if timeout is None else waits.seconds_of("a timeout", timeout)
        return waits.conclude(await waits.begin(self._session, f"wait:{signal}", signal, seconds), signal, seconds)

    async def callback_url(self, signal: str, *, expires_in: float | timedelta = waits.CALLBACK_SECONDS) -> str:
        """A URL to which an outside system posts once, to send this job a signal with the body as payload.

        It is secret, works once, and expires after `expires_in` (a week by default); only its hash is stored. Create it
        in the step that hands it over, so that a later attempt does not create another. Needs `$FENCELINE_PUBLIC_URL`,
        the address of the server. Raises InvalidOption, InvalidName.
        """
        return await waits.callback_url(self._session, signal, expires_in)

    # Others ----------------------------------------------------------------------------------------------------------

    def lock(self, namespace: str, id: str | int) -> AbstractAsyncContextManager[None]:
        """Hold a named lock for a block: waits for its turn, ends with the block or with the attempt.

            async with ctx.lock("edition", 42): ...

        Raises LockCycle when jobs would wait for each other for ever, InvalidName.
        """
        return hold(self._session, namespace, str(id))

    async def guard_newer(self, resource: str, version: float | Decimal | datetime) -> bool:
        """Announce that this job is about to write a version of a resource; True: go on.

        Raises Superseded when a newer version was announced before, by whatever job, even one that has failed since.
        Uncaught, that ends the job as `cancelled`, code `superseded`. Call it where no newer one can come between: in
        a `lock` of the resource, say. A datetime needs a timezone.

        Inside `transaction()` the version counts when the transaction commits, and not at all when it is rolled back;
        a job with another version of the resource waits for that.
        """
        values = {"resource": resource, "version": version_text(version)}
        if self._session.transaction_open is not None:
            self.raise_if_cancelled()
            call = calls.context.guard_write(self.job_id, self.attempt_id, **values)
            is_newest = await connections.run(self._session.transaction_open, call)
        else:
            is_newest = await self._session.execute("guard_newer", values, starts_work=True)
        return must_be_newest(resource, version, is_newest=is_newest)

    async def enqueue(
        self, kind: "str | Handler[..., R]", args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[R]:
        """Make a child job when this attempt succeeds, in the same transaction; if it does not, there is no child.

        The handle's id is final; it can be given to `after=` of another child. With a dedupe key or an idempotency key
        that belongs to another job by then, that job is the one, also for children that wait for it, and there is none
        with this id.
        """
        [child] = await self.enqueue_many(kind, [{} if args is None else args], **options)
        return child

    async def enqueue_many(
        self, kind: "str | Handler[..., R]", many: Iterable[Mapping[str, Any]], **options: Unpack[EnqueueOptions]
    ) -> list[Job[R]]:
        """`enqueue` for many args at once."""
        return await add_children(self._session, kind, many, options)

    def transaction(self, connection: Any = None) -> AbstractAsyncContextManager[TransactionConnection]:
        """End the job in a transaction of your own: what you write in the block and the job's end commit together.

            async with ctx.transaction() as conn:
                await conn.execute("insert into …")
                conn.result = {"rows": 1}

        An attempt that lost its claim rolls all of it back (StaleAttempt). `connection`: one of your own, or a session
        (asyncpg, psycopg, SQLAlchemy), which is committed; else it is one of asyncpg, of the app's own. After the block
        the job is done: nothing can be written any more, and what the handler returns or raises does not count.
        """
        self._session.check(starts_work=True)
        return Transaction(self._session, self).open(connection)


class Phase:
    """`async with ctx.phase(name):` or `await ctx.phase(name)`."""

    def __init__(self, session: "Session", name: str) -> None:
        self._session = session
        self._name = name

    def __await__(self) -> Any:
        return self._session.begin_phase(self._name).__await__()

    async def __aenter__(self) -> None:
        await self._session.begin_phase(self._name)

    async def __aexit__(self, *_error: object) -> None:
        """The phase stays on show until the next one begins."""
