"""The app object: a `Fenceline` with Celery's verbs."""

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, overload

from fenceline.client.app import Fenceline
from fenceline.client.app_parts import NAME, app_parts
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.compat.celery.apps import apps
from fenceline.compat.celery.canvas import Signature
from fenceline.compat.celery.conf import Conf
from fenceline.compat.celery.options import DEFAULT_QUEUE, read_call
from fenceline.compat.celery.result import AsyncResult
from fenceline.compat.celery.schedules import read_timing
from fenceline.compat.celery.task import Task
from fenceline.errors import InvalidName, LaneExists, NotFound, Unsupported

POSTGRES = ("postgresql://", "postgres://")


class Celery(Fenceline):
    """Celery's app. `main` names tasks of the module `__main__`.

    A `broker` that is a PostgreSQL database is the database; else that is `$FENCELINE_DSN`, or the embedded one, and
    the broker only says which way round priorities were meant. There is no result backend: jobs keep their results.
    """

    def __init__(
        self,
        main: str | None = None,
        *,
        broker: str | None = None,
        backend: str | None = None,
        include: Sequence[str] = (),
        config_source: Any = None,
        namespace: str | None = None,
        **options: Any,
    ) -> None:
        if options:
            raise Unsupported(f"Celery(…) cannot take {', '.join(sorted(options))}: Fenceline has nothing like it")
        super().__init__(broker if broker is not None and broker.startswith(POSTGRES) else None)
        app_parts(self).import_handlers = self._import_handlers
        self.main = main
        self.tasks: dict[str, Task] = {}
        self.conf = Conf(broker_url=broker, result_backend=backend, include=list(include) or None)
        self.control = Control(self)
        self._packages: list[Callable[[], Iterable[str]]] = []
        self._lanes: set[str] = set()
        if config_source is not None:
            self.config_from_object(config_source, namespace=namespace)
        apps.add(self)

    @overload
    def task(self, function: Callable[..., Any], /) -> Task: ...
    @overload
    def task(self, **options: Any) -> Callable[[Callable[..., Any]], Task]: ...
    def task(self, *args: Callable[..., Any], **options: Any) -> Any:
        """`@app.task`, bare or with options (`fenceline.compat.celery.options`). Raises Unsupported, InvalidName."""

        def add(function: Callable[..., Any]) -> Task:
            task = make_task(function, options, get_app=lambda: self, main=self.main)
            self.add_task(task)
            return task

        return add(*args) if args else add

    def add_task(self, task: Task) -> None:
        task.register(self)
        self.tasks[task.name] = task

    def send_task(
        self, name: str, args: Iterable[Any] | None = None, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> AsyncResult:
        """Enqueue by name, without the task's code."""
        return self.signature(name, args or (), kwargs).apply_async(**options)

    def signature(
        self, name: str, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> Signature:
        immutable = bool(options.pop("immutable", False))
        return Signature(name, lambda: self, args=args, kwargs=kwargs, options=options, immutable=immutable)

    def AsyncResult(self, task_id: str) -> AsyncResult:  # noqa: N802 - Celery's name
        return AsyncResult(task_id, app=self)

    # Configuration ---------------------------------------------------------------------------------------------------

    def config_from_object(self, source: Any, *, namespace: str | None = None, **_how: Any) -> None:
        """Settings of an object, or of where one is: "module" or "module:attribute"."""
        self.conf.read_later(source, namespace)

    def autodiscover_tasks(
        self, packages: Iterable[str] | Callable[[], Iterable[str]] | None = None, related_name: str = "tasks"
    ) -> None:
        """Import the module `tasks` of some packages, by default of Django's apps, when a worker loads the app."""
        named = list(packages) if packages is not None and not callable(packages) else packages
        find = named if callable(named) else _django_packages if named is None else lambda: named
        self._packages.append(lambda: _modules_of(find(), related_name))

    def _import_handlers(self) -> None:
        """Import the modules that have tasks, and declare the schedules of `beat_schedule`."""
        for module in [*(self.conf.include or ()), *(self.conf.imports or ())]:
            importlib.import_module(module)
        while self._packages:
            for module in self._packages.pop(0)():
                importlib.import_module(module)
        beat = self.conf.get("beat_schedule") or {}
        self.conf["beat_schedule"] = None  # they are declared once
        for name, entry in beat.items():
            self._declare(name, entry)

    def _declare(self, name: str, entry: Mapping[str, Any]) -> None:
        task, options = str(entry["task"]), entry.get("options") or {}
        if fixed := sorted({"eta", "expires", "task_id"} & options.keys()):
            raise Unsupported(f"schedule {name} cannot take {', '.join(fixed)}: it would be the same for all its jobs")
        said = self.call_options(task, options, makes_lanes=False)
        if "lane" in said:
            self.on_startup(partial(self._make_scheduled_lane, said["lane"]))
        self.schedule(
            **read_timing(entry["schedule"]),
            kind=task,
            name=name,
            args={"args": list(entry.get("args") or ()), "kwargs": dict(entry.get("kwargs") or {})},
            timezone=str(self.conf.get("timezone") or "UTC"),
            **said,
        )

    async def _make_scheduled_lane(self, lane: str) -> None:
        if lane not in {known.name for known in await self.lanes.list()}:
            with suppress(LaneExists):
                await self.lanes.create(lane)

    def call_options(self, task: str, options: Mapping[str, Any], *, makes_lanes: bool = True) -> EnqueueOptions:
        """The options of a call as those of an enqueue; where it says nothing, what the task says, then the routes."""
        known = self.tasks.get(task)
        said = {name: self.conf[f"task_default_{name}"] for name in ("queue", "priority")}
        said |= {"time_limit": self.conf.task_time_limit, **self.conf.route(task)}
        if known is not None:
            said["priority"] = said["priority"] if known.priority is None else known.priority
            # Said by the handler: an operator may know better than it, but not than a call.
            said |= {name: None for name in ("queue", "time_limit") if getattr(known, name) is not None}
        said |= {name: value for name, value in options.items() if value is not None}
        if said["queue"] == DEFAULT_QUEUE:
            del said["queue"]
        read = read_call(task, said, self.conf.rules)
        if makes_lanes and "lane" in read:
            self._make_lane(read["lane"])
        return read

    def _make_lane(self, lane: str) -> None:
        """As Celery makes queues that are missing (`task_create_missing_queues`)."""
        if lane in self._lanes:
            return
        try:
            self.sync.lanes.get(lane)
        except NotFound:
            with suppress(LaneExists):  # somebody else was quicker
                self.sync.lanes.create(lane)
        self._lanes.add(lane)

    def worker_main(self, *_args: Any) -> NoReturn:
        raise Unsupported("workers are Fenceline's own: run `fenceline worker module:app`")

    start = worker_main


class Control:
    """`app.control`: of what Celery sends to its workers, the one thing that is a verb of jobs."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def revoke(self, task_id: str | Sequence[str], *, terminate: bool = False, **_how: Any) -> None:
        for one in [task_id] if isinstance(task_id, str) else task_id:
            self._app.AsyncResult(one).revoke(terminate=terminate)

    def __getattr__(self, name: str) -> NoReturn:
        raise Unsupported(f"app.control has no {name}: see `fenceline workers`, `lanes` and `jobs`")


def make_task(
    function: Callable[..., Any], options: Mapping[str, Any], *, get_app: Callable[[], Celery], main: str | None
) -> Task:
    """Raises Unsupported, InvalidName."""
    module = main if function.__module__ == "__main__" and main else function.__module__
    name = options.get("name") or f"{module}.{function.__name__}"
    if not NAME.fullmatch(name):
        raise InvalidName(
            f"the task name {name!r} is not a valid kind: give the task a name= of 1 to 64 of a-z, 0-9, "
            '"_", "." and "-"'
        )
    base = options.get("base") or Task
    task = base()
    if not isinstance(task, Task):
        raise TypeError(f"base={base!r} of task {name} is no subclass of Task")
    task.configure(function, name, options, get_app)
    return task


def _django_packages() -> list[str]:
    found = importlib.import_module("django.apps")
    return [config.name for config in found.apps.get_app_configs()]


def _modules_of(packages: Iterable[str], related_name: str) -> list[str]:
    names = [f"{package}.{related_name}" for package in packages]
    return [name for name in names if importlib.util.find_spec(name) is not None]
