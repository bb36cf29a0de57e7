"""Tasks: functions that can be sent, with Celery's attributes. Each is a handler of its app."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, overload

from fenceline.app import Fenceline
from fenceline.client.app_parts import NAME
from fenceline.compat.celery.absent import absent
from fenceline.compat.celery.apps import apps
from fenceline.compat.celery.canvas import Signature
from fenceline.compat.celery.exceptions import MaxRetriesExceededError
from fenceline.compat.celery.exceptions import Retry as RetryTask
from fenceline.compat.celery.options import check_task_options, lane_of, plain_json
from fenceline.compat.celery.request import Request, current_request, make_request
from fenceline.compat.celery.result import AsyncResult
from fenceline.context.sync_context import SyncContext
from fenceline.errors import Fail, InvalidName, Steering, Unsupported
from fenceline.model.retry import Retry

#: What `max_retries=None`, which means for ever in Celery, becomes.
MAX_ATTEMPTS = 1000
#: Methods of a task's class that Celery calls. They are refused: only the database knows which attempt is the last.
HOOKS = ("before_start", "on_success", "on_failure", "on_retry", "after_return")


class Task:
    """What `@app.task` and `@shared_task` make of a function. `base=` names a subclass to use instead.

    The decorator's options become attributes.
    """

    name: str = ""
    bind: bool = False
    queue: str | None = None
    priority: int | None = None
    max_retries: int | None = 3
    default_retry_delay: float = 180.0
    autoretry_for: Sequence[type[Exception]] = ()
    dont_autoretry_for: Sequence[type[Exception]] = ()
    retry_backoff: bool | int = False
    retry_backoff_max: float = 600.0
    retry_jitter: bool = True
    retry_kwargs: Mapping[str, Any] = {}
    ignore_result: bool | None = None
    time_limit: float | None = None
    expires: float | datetime | None = None
    rate_limit: str | float | None = None
    typing: bool = True

    MaxRetriesExceededError = MaxRetriesExceededError

    _function: Callable[..., Any]
    _get_app: Callable[[], Any]

    def configure(
        self, function: Callable[..., Any], options: Mapping[str, Any], get_app: Callable[[], Any], main: str | None
    ) -> None:
        """Become the task of a function. Raises Unsupported, InvalidName."""
        module = main if function.__module__ == "__main__" and main else function.__module__
        name = options.get("name") or f"{module}.{function.__name__}"
        if not NAME.fullmatch(name):
            raise InvalidName(
                f"the task name {name!r} is not a valid kind: give the task a name= of 1 to 64 of a-z, 0-9, "
                '"_", "." and "-"'
            )
        check_task_options(name, options)
        for hook in HOOKS:
            if hasattr(type(self), hook):
                raise Unsupported(
                    f"task {name} has the hook {hook}, which nothing would call: use @app.middleware, or a task that "
                    "runs after it"
                )
        if options.get("queue") and options.get("rate_limit"):
            raise Unsupported(
                f"task {name} cannot have both queue and rate_limit: a rate belongs to a lane. Use fenceline lanes set "
                "NAME --rate-per-second N for that of the queue"
            )
        if inspect.iscoroutinefunction(function):
            raise Unsupported(f"task {name} is async, which Celery has not: make it an @app.job handler")
        for option, value in options.items():
            setattr(self, option, value)
        self.name = name
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self._function = function
        self._get_app = get_app

    def __repr__(self) -> str:
        return f"<@task: {self.name}>"

    @property
    def app(self) -> Any:
        return self._get_app()

    @property
    def request(self) -> Request:
        current = current_request.get()
        return current if current is not None and current.task == self.name else Request()

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself."""
        return self._function(self, *args, **kwargs) if self.bind else self._function(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)

    # Sending ---------------------------------------------------------------------------------------------------------

    def delay(self, *args: Any, **kwargs: Any) -> AsyncResult:
        return self.apply_async(args, kwargs)

    def apply_async(
        self, args: Iterable[Any] | None = None, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> AsyncResult:
        """Enqueue the task: `countdown eta expires queue priority task_id time_limit`.

        Raises TypeError for args that do not fit the function, InvalidArgs for those that are not JSON, Unsupported for
        options that Fenceline lacks, and what an enqueue raises.
        """
        return self.signature(args or (), kwargs).apply_async(**options)

    def signature(
        self,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        immutable: bool = False,
        **options: Any,
    ) -> Signature:
        return Signature(
            task=self.name,
            get_app=self._get_app,
            args=tuple(args),
            kwargs=dict(kwargs or {}),
            options=options,
            immutable=immutable,
        )

    subtask = signature

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        return self.signature(args, kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature:
        return self.signature(args, kwargs, immutable=True)

    def AsyncResult(self, task_id: str) -> AsyncResult:  # noqa: N802 - Celery's name
        return AsyncResult(task_id, app=self.app)

    apply = absent("apply", "call the task like a function, or see docs/guides/testing.md")
    map = absent("map", "use group(task.s(item) for item in items)")
    starmap = absent("starmap", "use group(task.s(*item) for item in items)")
    chunks = absent("chunks", "enqueue one task per part, in a group")

    def check_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raises TypeError, as a call would."""
        if self.typing:
            given = [self, *args] if self.bind else args
            try:
                inspect.signature(self._function).bind(*given, **kwargs)
            except TypeError as error:
                raise TypeError(f"arguments of {self.name} do not fit: {error}") from None

    # Running ---------------------------------------------------------------------------------------------------------

    def retry(  # noqa: PLR0917 - as Celery has it
        self,
        args: Any = None,
        kwargs: Any = None,
        exc: Exception | None = None,
        throw: bool = True,  # noqa: FBT001, FBT002 - as Celery has it
        eta: datetime | None = None,
        countdown: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> RetryTask:
        """Run again later: raises Retry, or returns it with `throw=False`.

        If no attempt is left it raises `exc`, or MaxRetriesExceededError. The number of attempts was fixed by the
        enqueue, so `max_retries` can only lower it.
        """
        request = self.request
        if request.called_directly:
            raise exc or Unsupported(f"{self.name} was called like a function: there is no job to run again")
        if args is not None or kwargs is not None or options:
            raise Unsupported(f"{self.name}.retry() cannot change the job: args and options are those of the enqueue")
        most = request.context.job.max_attempts - 1
        if max_retries is not None and max_retries > most:
            raise Unsupported(f"{self.name}.retry(max_retries={max_retries}) is above {most}: set it in the decorator")
        if request.retries >= (most if max_retries is None else max_retries):
            raise exc or MaxRetriesExceededError(f"{self.name} was tried {request.retries + 1} times: {request.id}")
        if eta is not None:
            countdown = max(0.0, (eta - datetime.now(eta.tzinfo or UTC)).total_seconds())
        after = self.default_retry_delay if countdown is None else countdown
        again = RetryTask(str(exc) if exc is not None else "asked to be retried", after=after)
        if throw:
            raise again from exc
        return again

    def update_state(
        self, task_id: Any = None, state: str | None = None, meta: Mapping[str, Any] | None = None
    ) -> None:
        """Report on the task: the state becomes the job's phase, `current` and `total` in the meta its progress."""
        if task_id not in (None, self.request.id):
            raise Unsupported("update_state() of another task: a task can only report on itself")
        context, details = self.request.context, dict(meta or {})
        if state is not None:
            context.phase(state)
        context.progress(details.get("current"), details.get("total"), meta=plain_json("the meta", details))

    def register(self, app: Fenceline) -> None:
        """Make the task a handler of an app."""

        def run_task(
            ctx: SyncContext,
            args: list[Any],
            kwargs: dict[str, Any],
            takes: str | None = None,
            number: int | None = None,  # noqa: ARG001 - read from the args by the task that waits for the group
        ) -> Any:
            return self._run(ctx, [*_received(ctx, takes), *args], kwargs)

        run_task.__qualname__ = self._function.__qualname__
        lane = None if self.queue is None else lane_of(self.queue)
        app.job(kind=self.name, lane=lane, timeout=self.time_limit, retry=self._policy())(run_task)

    def _run(self, ctx: SyncContext, args: list[Any], kwargs: dict[str, Any]) -> Any:
        current_request.set(make_request(ctx, args, kwargs))  # every job has its own context in its thread
        try:
            value = plain_json(f"the result of {self.name}", self(*args, **kwargs))
        except Steering:
            raise
        except Exception as error:
            if isinstance(error, tuple(self.autoretry_for)) and not isinstance(error, tuple(self.dont_autoretry_for)):
                raise
            raise _for_good(error) from error
        ignored = self.app.conf.task_ignore_result if self.ignore_result is None else self.ignore_result
        return None if ignored else value

    def _policy(self) -> Retry:
        most = self.retry_kwargs.get("max_retries", self.max_retries)
        attempts = MAX_ATTEMPTS if most is None else most + 1
        if self.retry_backoff:
            return Retry(
                max_attempts=attempts,
                backoff="exponential",
                base=float(self.retry_backoff),
                jitter=0.1 if self.retry_jitter else 0.0,
                max_delay=self.retry_backoff_max,
            )
        delay = self.retry_kwargs.get("countdown", self.default_retry_delay)
        return Retry(max_attempts=attempts, backoff="fixed", base=delay, jitter=0.0)


@overload
def shared_task(function: Callable[..., Any], /) -> Task: ...
@overload
def shared_task(**options: Any) -> Callable[[Callable[..., Any]], Task]: ...
def shared_task(*args: Callable[..., Any], **options: Any) -> Any:
    """`@shared_task`, bare or with options: a task of every app in the program."""
    return task_decorator(args, options, get_app=apps.current, add=apps.share)


def task_decorator(
    args: tuple[Callable[..., Any], ...],
    options: Mapping[str, Any],
    *,
    get_app: Callable[[], Any],
    add: Callable[[Task], None],
    main: str | None = None,
) -> Any:
    """A decorator that makes tasks and adds them; a task if `args` has the function already."""

    def make(function: Callable[..., Any]) -> Task:
        base = options.get("base") or Task
        task = base()
        if not isinstance(task, Task):
            raise TypeError(f"base={base!r} of {function.__qualname__} is not a subclass of Task")
        task.configure(function, options, get_app, main)
        add(task)
        return task

    return make(*args) if args else make


def _received(ctx: SyncContext, takes: str | None) -> list[Any]:
    """What the jobs before it pass on: the result of a chain's task, or those of a group in their order."""
    if takes is None:
        return []
    results = [parent.result for parent in sorted(ctx.parents, key=lambda parent: (parent.args or {}).get("number", 0))]
    return [results] if takes == "results" else results


def _for_good(error: Exception) -> Fail:
    """The same failure without a retry, under the exception's own name: Celery retries only what it is told to."""
    kind = type(type(error).__qualname__, (Fail,), {})
    failure: Fail = kind(str(error))
    return failure
