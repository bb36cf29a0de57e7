"""Signatures, chains, groups and chords: they become jobs that wait for jobs, enqueued in one statement."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

from fenceline.client.sync_groups import SyncGroup
from fenceline.compat.celery.absent import absent
from fenceline.compat.celery.apps import apps
from fenceline.compat.celery.options import INSTEAD, plain_json
from fenceline.compat.celery.request import TASK_ID
from fenceline.compat.celery.result import AsyncResult, GroupResult
from fenceline.errors import EmptyGroup, Unsupported

if TYPE_CHECKING:
    from fenceline.compat.celery.app import Celery

Result = AsyncResult | GroupResult


class Canvas(ABC):
    """Something that can be sent: one task with its arguments, or several in some order."""

    tasks: "list[Canvas]"

    @abstractmethod
    def clone(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "Canvas": ...

    @abstractmethod
    def place(self, jobs: SyncGroup, previous: Result | None, number: int | None = None) -> Result:
        """Add its jobs to those to be enqueued, to run after `previous`. `number` is its position in a group."""

    @property
    def app(self) -> "Celery":
        """The app of its first task."""
        found = self.signatures()
        return found[0].get_app() if found else apps.current()

    def signatures(self) -> "list[Signature]":
        """The single tasks in it."""
        return [found for task in self.tasks for found in task.signatures()]

    def apply_async(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Enqueue all of it, or nothing."""
        whole = self.clone(args, kwargs, **options)
        with suppress(EmptyGroup), whole.app.sync.group() as jobs:
            result = whole.place(jobs, None)
        return result

    def delay(self, *args: Any, **kwargs: Any) -> Any:
        return self.apply_async(args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.apply_async(args, kwargs)

    def __or__(self, other: "Canvas") -> "chain":
        return chain(self, other)

    link = absent("link", INSTEAD["link"])
    link_error = on_error = absent("link_error", INSTEAD["link_error"])


@dataclass(kw_only=True, eq=False, repr=False)
class Signature(Canvas):
    """A task's name with arguments and options for a later call."""

    task: str
    get_app: "Callable[[], Celery]"
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    options: dict[str, Any]
    immutable: bool

    def __repr__(self) -> str:
        return f"{self.task}({', '.join([*map(repr, self.args), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the task itself, here and now."""
        whole = self.clone(args, kwargs)
        return whole.app.tasks[self.task](*whole.args, **whole.kwargs)

    def signatures(self) -> "list[Signature]":
        return [self]

    def clone(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "Signature":
        """With more arguments before its own; an immutable signature ignores them."""
        added, named = ((), {}) if self.immutable else (args, kwargs or {})
        return replace(
            self, args=(*added, *self.args), kwargs={**self.kwargs, **named}, options={**self.options, **options}
        )

    def set(self, *, immutable: bool | None = None, **options: Any) -> Self:
        self.options |= options
        self.immutable = self.immutable if immutable is None else immutable
        return self

    def apply_async(
        self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> AsyncResult:
        whole = self.clone(args, kwargs, **options)
        return whole.send(whole.app.sync.enqueue, None, None)

    def place(self, jobs: SyncGroup, previous: Result | None, number: int | None = None) -> AsyncResult:
        return self.send(jobs.enqueue, previous, number)

    def send(self, enqueue: Callable[..., Any], previous: Result | None, number: int | None) -> AsyncResult:
        """Enqueue its job, to run after `previous`, by a function like `app.sync.enqueue`."""
        options = self.app.call_options(self.task, self.options)
        if waited_for := _jobs_of(previous):
            options["after"] = waited_for
        job = enqueue(self.task, self._job_args(previous, number), **options)
        return AsyncResult(options.get("labels", {}).get(TASK_ID), app=self.app, job=job, parent=previous)

    def _job_args(self, previous: Result | None, number: int | None) -> dict[str, Any]:
        """The args of its job; results of the jobs before it are added when it runs. Raises InvalidArgs, TypeError."""
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
        optional = {"takes": takes, "number": number}
        return {
            "args": args,
            "kwargs": self.kwargs,
            **{name: value for name, value in optional.items() if value is not None},
        }


class chain(Canvas):  # noqa: N801 - Celery's name
    """One after the other, each with the result of the one before as its first argument."""

    def __init__(self, *tasks: Any) -> None:
        parts = _each(tasks)
        # A chain in a chain is one chain. A chord is one as well, but checks that it has a body.
        self.tasks = [task for part in parts for task in (part.tasks if type(part) is chain else [part])]
        if not self.tasks:
            raise TypeError("a chain needs at least one signature")

    def clone(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "chain":
        """With arguments and options for the first task."""
        return chain(self.tasks[0].clone(args, kwargs, **options), *self.tasks[1:])

    def place(self, jobs: SyncGroup, previous: Result | None, number: int | None = None) -> Result:
        *first, last = self.tasks
        for task in first:
            previous = task.place(jobs, previous)
        return last.place(jobs, previous, number)


class group(Canvas):  # noqa: N801 - as above
    """All at the same time; the next of a chain waits for all of them."""

    def __init__(self, *tasks: Any) -> None:
        self.tasks = _each(tasks)

    def clone(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "group":
        added = tuple(args)
        return group(*(task.clone(added, kwargs, **options) for task in self.tasks))

    def place(self, jobs: SyncGroup, previous: Result | None, number: int | None = None) -> GroupResult:
        if number is not None:
            raise Unsupported("a group in a group has no result of its own: write one group, or a chord")
        placed = [task.place(jobs, previous, number) for number, task in enumerate(self.tasks)]
        return GroupResult(jobs.name, cast("list[AsyncResult]", placed), parent=previous)


class chord(chain):  # noqa: N801 - as above
    """A group, then a task that gets the list of its results: `chord(header)(body)`."""

    def __init__(self, header: Any, body: Canvas | None = None) -> None:
        self.header = header if isinstance(header, group) else group(header)
        self.body = body
        super().__init__(self.header, *([] if body is None else [body]))

    def clone(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "chord":
        if options:
            raise Unsupported("a chord takes no options: give them to its signatures, with .set()")
        return chord(self.header.clone(args, kwargs), self.body)

    def __call__(self, body: Canvas | None = None) -> Any:
        return chord(self.header, body or self.body).apply_async()

    def place(self, jobs: SyncGroup, previous: Result | None, number: int | None = None) -> Result:
        if self.body is None:
            raise TypeError("the chord has no body: chord(header)(body)")
        return super().place(jobs, previous, number)


def signature(
    name: str,
    args: Iterable[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    immutable: bool = False,
    app: "Celery | None" = None,
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> Signature:
    """A signature of a task whose code need not be here."""
    return Signature(
        task=name,
        get_app=apps.current if app is None else lambda: app,
        args=tuple(args),
        kwargs=dict(kwargs or {}),
        options={**(options or {}), **more},
        immutable=immutable,
    )


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
