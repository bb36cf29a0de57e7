"""The app object: a `Fenceline` with Celery's verbs."""

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, overload

from fenceline.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.compat.celery import in_django
from fenceline.compat.celery.apps import apps
from fenceline.compat.celery.canvas import Signature, signature
from fenceline.compat.celery.conf import Conf
from fenceline.compat.celery.lanes import MissingLanes
from fenceline.compat.celery.options import DEFAULT_QUEUE, rate_of, read_call
from fenceline.compat.celery.result import AsyncResult
from fenceline.compat.celery.schedules import name_of, read_timing
from fenceline.compat.celery.task import Task, task_decorator
from fenceline.database.dsn import Source
from fenceline.errors import Unsupported

POSTGRES = ("postgresql://", "postgres://")
#: Options of an enqueue that a schedule cannot have, with Celery's names for them.
FIXED = {"run_at": "eta", "expires_at": "expires", "idempotency_key": "task_id"}

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class Celery(Fenceline):
    """Celery's app. `main` replaces `__main__` in the names of tasks.

    If the broker, here or in the settings, has a PostgreSQL URL, that is the database. Otherwise the database is
    `$FENCELINE_DSN` or the embedded one, and the broker only tells whether 0 or 9 was the highest priority. There is no
    result backend: jobs keep their results.
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
        super().__init__()
        self.main = main
        self.tasks: dict[str, Task] = {}
        self.Task = Task
        self.conf = Conf(broker_url=broker, result_backend=backend, include=list(include) or None)
        self.control = Control(self)
        self.on_after_configure = self.on_after_finalize = WhenLoaded()
        self._packages: list[Callable[[], Iterable[str]]] = []
        self._lanes = MissingLanes(self)
        app_parts(self).import_handlers = self._import_handlers
        app_parts(self).source = BrokerSource(broker, self.conf)
        if config_source is not None:
            self.config_from_object(config_source, namespace=namespace)
        if in_django.is_project():
            in_django.refresh_connections(self)
        apps.add(self)

    @overload
    def task(self, function: Callable[..., Any], /) -> Task: ...
    @overload
    def task(self, **options: Any) -> Callable[[Callable[..., Any]], Task]: ...
    def task(self, *args: Callable[..., Any], **options: Any) -> Any:
        """`@app.task`, bare or with options (`fenceline.compat.celery.options`). Raises Unsupported, InvalidName."""
        return task_decorator(args, options, get_app=lambda: self, add=self.add_task, main=self.main)

    def add_task(self, task: Task) -> None:
        if task.rate_limit:
            rate = rate_of(task.name, task.rate_limit)
            self._lanes.declare(task.name, kinds=[task.name], rate_per_second=rate, burst=1)
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
        return signature(name, args, kwargs, app=self, **options)

    def AsyncResult(self, task_id: str) -> AsyncResult:  # noqa: N802 - Celery's name
        return AsyncResult(task_id, app=self)

    # Configuration ---------------------------------------------------------------------------------------------------

    def config_from_object(self, source: Any, *, namespace: str | None = None, **_how: Any) -> None:
        """Take settings from an object, or from "module" or "module:attribute", when the first one is needed."""
        self.conf.read_later(source, namespace)

    def autodiscover_tasks(
        self, packages: Iterable[str] | Callable[[], Iterable[str]] | None = None, related_name: str = "tasks"
    ) -> None:
        """Import the module `tasks` of some packages, by default of Django's apps, when a worker loads the app."""

        def find() -> Iterable[str]:
            return _django_packages() if packages is None else packages() if callable(packages) else packages

        self._packages.append(lambda: _modules_of(find(), related_name))

    def add_periodic_task(
        self,
        schedule: Any,
        sig: Signature,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        """Add what would be an entry of `beat_schedule`. Raises Unsupported, InvalidSchedule."""
        whole = sig.clone(args, kwargs, **options)
        entry = {"task": whole.task, "args": whole.args, "kwargs": whole.kwargs, "options": whole.options}
        self._declare(name or whole.task, {"schedule": schedule, **entry})

    def _import_handlers(self) -> None:
        """Import the modules that have tasks, then declare the schedules of `beat_schedule`."""
        if in_django.is_project():
            in_django.set_up()
        for module in [*(self.conf.include or ()), *(self.conf.imports or ())]:
            importlib.import_module(module)
        while self._packages:
            for module in self._packages.pop(0)():
                importlib.import_module(module)
        self.on_after_configure.call(self)
        beat = self.conf.get("beat_schedule") or {}
        self.conf["beat_schedule"] = None  # each schedule is declared once
        for name, entry in beat.items():
            self._declare(name, entry)

    def _declare(self, name: str, entry: Mapping[str, Any]) -> None:
        task = str(entry["task"])
        options = self.call_options(task, entry.get("options") or {}, makes_lanes=False)
        if fixed := sorted(FIXED.keys() & options.keys()):
            raise Unsupported(
                f"schedule {name} cannot take {', '.join(FIXED[option] for option in fixed)}: it would be the same for "
                "all its jobs"
            )
        if "lane" in options:
            self._lanes.declare(options["lane"])
        self.schedule(
            **read_timing(entry["schedule"]),
            kind=task,
            name=name_of(name),
            args={"args": list(entry.get("args") or ()), "kwargs": dict(entry.get("kwargs") or {})},
            timezone=str(self.conf.get("timezone") or "UTC"),
            **options,
        )

    def call_options(self, task: str, options: Mapping[str, Any], *, makes_lanes: bool = True) -> EnqueueOptions:
        """The options of an enqueue for those of a call. Defaults come from the task, then the routes and settings."""
        known = self.tasks.get(task)
        merged = {name: self.conf[f"task_default_{name}"] for name in ("queue", "priority")}
        merged |= {"time_limit": self.conf.task_time_limit, **self.conf.route(task)}
        if known is not None:
            merged["priority"] = merged["priority"] if known.priority is None else known.priority
            merged["expires"] = known.expires
            # The handler has these. Left out here, they can be overruled by an operator; those of a call cannot.
            merged |= {name: None for name in ("queue", "time_limit") if getattr(known, name) is not None}
            if known.rate_limit:
                merged["queue"] = None  # the rate is that of the lane that lists the task
        merged |= {name: value for name, value in options.items() if value is not None}
        if merged["queue"] == DEFAULT_QUEUE:
            del merged["queue"]
        enqueue_options = read_call(task, merged, self.conf)
        if makes_lanes and "lane" in enqueue_options:
            self._lanes.make(enqueue_options["lane"])
        return enqueue_options

    def worker_main(self, *_args: Any) -> NoReturn:
        raise Unsupported("workers are Fenceline's own: run `fenceline worker module:app`")

    start = worker_main


apps.make_default = lambda: Celery("default")


class BrokerSource(Source):
    """The broker's URL, if it names a PostgreSQL database. The settings are read when the database is first needed."""

    def __init__(self, broker: str | None, conf: Conf) -> None:
        super().__init__()
        self._broker = broker or ""
        self._conf = conf

    @property
    def given(self) -> str | None:
        urls = (self._broker, self._conf.broker)
        return next((url for url in urls if url.startswith(POSTGRES)), super().given)


class WhenLoaded:
    """`app.on_after_configure` and `on_after_finalize`: functions to call once, when a command has loaded the app."""

    def __init__(self) -> None:
        self._functions: list[Callable[..., Any]] = []

    def connect(self, function: FunctionT) -> FunctionT:
        self._functions.append(function)
        return function

    def call(self, app: Celery) -> None:
        while self._functions:
            self._functions.pop(0)(sender=app)


class Control:
    """`app.control`: only `revoke`, which concerns jobs; everything else is about Celery's workers."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def revoke(self, task_id: str | Sequence[str], *, terminate: bool = False, **_how: Any) -> None:
        for one in [task_id] if isinstance(task_id, str) else task_id:
            self._app.AsyncResult(one).revoke(terminate=terminate)

    def __getattr__(self, name: str) -> NoReturn:
        raise Unsupported(f"app.control has no {name}: see `fenceline workers`, `lanes` and `jobs`")


def _django_packages() -> list[str]:
    found = importlib.import_module("django.apps")
    return [config.name for config in found.apps.get_app_configs()]


def _modules_of(packages: Iterable[str], related_name: str) -> list[str]:
    names = [f"{package}.{related_name}" for package in packages]
    return [name for name in names if importlib.util.find_spec(name) is not None]
