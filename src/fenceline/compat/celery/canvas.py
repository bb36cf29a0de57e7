"""Signatures, chains, groups and chords: a canvas becomes jobs that wait for jobs, enqueued in one statement."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, Self

from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.sync_app import SyncFenceline
from fenceline.client.sync_groups import SyncGroup
from fenceline.compat.celery.absent import absent
from fenceline.compat.celery.options import INSTEAD, plain_json
from fenceline.compat.celery.request import TASK_ID
from fenceline.compat.celery.result import AsyncResult, GroupResult
from fenceline.errors import EmptyGroup, Unsupported

Result = AsyncResult | GroupResult


class Callee(Protocol):
    """A task, as far as a canvas needs it."""

    def check_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


class CanvasApp(Protocol):
    """An app, as far as a canvas needs it."""

    sync: SyncFenceline

    @property
    def tasks(self) -> Mapping[str, Callee]: ...
    def call_options(self, task: str, options: Mapping[str, Any]) -> EnqueueOptions: ...


class Canvas(ABC):
    """Something that can be sent: a task with its arguments, or several in some order."""

    @property
    @abstractmethod
    def app(self) -> CanvasApp: ...

    @abstractmethod
    def clone(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "Canvas": ...

    @abstractmethod
    def place(self, jobs: SyncGroup, previous: Result | None, number: int | None = None) -> Result:
        """Add the jobs to those to be enqueued, after what is `previous`. `number`: which of a group it is."""

    def apply_async(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Enqueue all of it, or nothing."""
        whole = self.clone(args, kwargs, **options)
        with suppress(EmptyGroup), whole.app.sync.group() as jobs:
            result = whole.place(jobs, None)
        return result

    def delay(self, *args: Any, **kwargs: Any) -> Any:
        return self.apply_async(args, kwargs)

    def __or__(self, other: "Canvas") -> "chain":
        return chain(self, other)

    link = absent("link", INSTEAD["link"])
    link_error = on_error = absent("link_error", INSTEAD["link_error"])


class Signature(Canvas):
    """A task's name with arguments and options for a call to come."""

    def __init__(
        self,
        name: str,
        get_app: Callable[[], Any],
        *,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        immutable: bool = False,
    ) -> None:
        self.task = name
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})
        self.options = dict(options or {})
        self.immutable = immutable
        self._get_app = get_app

    def __repr__(self) -> str:
        return f"{self.task}({', '.join([*map(repr, self.args), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"

    @property
    def app(self) -> CanvasApp:
        app: CanvasApp = self._get_app()
        return app

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the task itself, here and now."""
        whole = self.clone(args, kwargs)
        return whole.app.tasks[self.task](*whole.args, **whole.kwargs)

    def clone(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "Signature":
        """With further arguments before its own, which an immutable one does not take."""
        added, named = ((), {}) if self.immutable else (tuple(args), kwargs or {})
        return Signature(
            self.task,
            self._get_app,
            args=(*added, *self.args),
            kwargs={**self.kwargs, **named},
            options={**self.options, **options},
            immutable=self.immutable,
        )

    def set(self, *, immutable: bool | None = None, **options: Any) -> Self:
        self.options |= options
        self.immutable = self.immutable if immutable is None else immutable
        return self

    def apply_async(
        self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> AsyncResult:
        whole = self.clone(args, kwargs, **options)
        said = whole.app.call_options(self.task, whole.options)
        job = whole.app.sync.enqueue(self.task, whole.job_args(None, None), **said)
        return AsyncResult(said.get("labels", {}).get(TASK_ID), app=_fenceline(whole.app), job=job)

    def place(self, jobs: SyncGroup, previous: Result | None, number: int | None = None) -> AsyncResult:
        said = self.app.call_options(self.task, self.options)
        if waited_for := _jobs_of(previous):
            said["after"] = waited_for
        job = jobs.enqueue(self.task, self.job_args(previous, number), **said)
        task_id = said.get("labels", {}).get(TASK_ID)
        return AsyncResult(task_id, app=_fenceline(self.app), job=job, parent=previous)

    def job_args(self, previous: Result | None, number: int | None) -> dict[str, Any]:
        """The args of its job; what comes from the jobs before is added when it runs. Raises InvalidArgs, TypeError."""
        takes = None if previous is None or self.immutable else "result"
        args: list[Any] = list(self.args)
        if takes is not None and isinstance(previous, GroupResult):
            takes = "results"
            if not previous.results:  # nothing to wait for: the results are known
                takes, args = None, [[], *args]
        task = self.app.tasks.get(self.task)
        if task is not None:
            task.check_arguments([None, *args] if takes else args, self.kwargs)
        plain_json(f"args of {self.task}", [args, self.kwargs])
        more = {"takes": takes, "number": number}
        return {"args": args, "kwargs": self.kwargs} | {
            name: value for name, value in more.items() if value is not None
        }


class chain(Canvas):  # noqa: N801 - Celery's name
    """One after the other, each with the result of the one before as its first argument."""

    def __init__(self, *tasks: Any) -> None:
        given = _each(tasks)
        self.tasks: list[Canvas] = [part for one in given for part in (one.tasks if isinstance(one, chain) else [one])]
        if not self.tasks:
            raise TypeError("a chain needs at least one signature")

    @property
    def app(self) -> CanvasApp:
        return self.tasks[0].app

    def clone(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "chain":
        """The first of them takes it."""
        return chain(self.tasks[0].clone(args, kwargs, **options), *self.tasks[1:])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.apply_async(args, kwargs)

    def place(self, jobs: SyncGroup, previous: Result | None, number: int | None = None) -> Result:
        *first, last = self.tasks
        for task in first:
            previous = task.place(jobs, previous)
        return last.place(jobs, previous, number)


class group(Canvas):  # noqa: N801 - as above
    """All at the same time; together they are what the next of a chain waits for."""

    def __init__(self, *tasks: Any) -> None:
        self.tasks: list[Canvas] = _each(tasks)

    @property
    def app(self) -> CanvasApp:
        if not self.tasks:
            raise EmptyGroup("the group has no tasks")
        return self.tasks[0].app

    def clone(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "group":
        given = tuple(args)
        return group(*(task.clone(given, kwargs, **options) for task in self.tasks))

    def apply_async(
        self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> GroupResult:
        if not self.tasks:
            return GroupResult("", [])
        result: GroupResult = super().apply_async(args, kwargs, **options)
        return result

    def __call__(self, *args: Any, **kwargs: Any) -> GroupResult:
        return self.apply_async(args, kwargs)

    def place(self, jobs: SyncGroup, previous: Result | None, number: int | None = None) -> GroupResult:
        if number is not None:
            raise Unsupported("a group in a group has no result of its own: write one group, or a chord")
        placed = [task.place(jobs, previous, number) for number, task in enumerate(self.tasks)]
        results = [result for result in placed if isinstance(result, AsyncResult)]
        return GroupResult(jobs.name, results, parent=previous)


class chord(Canvas):  # noqa: N801 - as above
    """A group, and a task that gets the list of its results: `chord(header)(body)`."""

    def __init__(self, header: Any, body: Canvas | None = None) -> None:
        self.tasks = header if isinstance(header, group) else group(header)
        self.body = body

    @property
    def app(self) -> CanvasApp:
        return self._whole.app if self.tasks.tasks else self._whole.tasks[1].app

    def clone(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "chord":
        if options:
            raise Unsupported("a chord takes no options: give them to its signatures, with .set()")
        return chord(self.tasks.clone(args, kwargs), self.body)

    def __call__(self, body: Canvas | None = None) -> AsyncResult:
        result: AsyncResult = chord(self.tasks, body or self.body).apply_async()
        return result

    def place(self, jobs: SyncGroup, previous: Result | None, number: int | None = None) -> Result:
        return self._whole.place(jobs, previous, number)

    @property
    def _whole(self) -> chain:
        if self.body is None:
            raise TypeError("the chord has no body: chord(header)(body)")
        return chain(self.tasks, self.body)


def _each(given: tuple[Any, ...]) -> list[Canvas]:
    """The parts of a canvas: as arguments, or as one iterable of them."""
    parts = list(given[0]) if len(given) == 1 and not isinstance(given[0], Canvas) else list(given)
    for part in parts:
        if not isinstance(part, Canvas):
            raise TypeError(f"{part!r:.200} is not a signature: write task.s(…) or task.si(…)")
    return parts


def _jobs_of(result: Result | None) -> list[Any]:
    if result is None:
        return []
    return [one.job for one in ([result] if isinstance(result, AsyncResult) else result.results)]


def _fenceline(app: CanvasApp) -> Any:
    return app
