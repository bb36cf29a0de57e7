"""The apps of this process and the tasks they share: global state that Celery's API needs, kept nowhere else."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from fenceline.compat.celery.app import Celery
    from fenceline.compat.celery.task import Task


class Apps:
    def __init__(self) -> None:
        self._known: WeakSet[Celery] = WeakSet()
        self._shared: list[Task] = []
        self._last: Celery | None = None
        self.make_default: Callable[[], Celery]  # set by the module of the class, which imports this one

    def add(self, app: "Celery") -> None:
        self._known.add(app)
        self._last = app
        for task in self._shared:
            app.add_task(task)

    def current(self) -> "Celery":
        """The app that was made last, to which shared tasks are sent; a default one if there is none."""
        return self._last or self.make_default()

    def share(self, task: "Task") -> None:
        self._shared.append(task)
        for app in self._known:
            app.add_task(task)


apps = Apps()
