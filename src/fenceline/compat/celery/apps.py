"""The apps of this process and the tasks that they share. Celery has them, so they are here, and nowhere else."""

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
        self.make_default: Callable[[], Celery]  # said by the module of the class

    def add(self, app: "Celery") -> None:
        self._known.add(app)
        self._last = app
        for task in self._shared:
            app.add_task(task)

    def current(self) -> "Celery":
        """The app made last: where shared tasks are sent. Where none was made, one of its own."""
        return self._last or self.make_default()

    def share(self, task: "Task") -> None:
        self._shared.append(task)
        for app in self._known:
            app.add_task(task)


apps = Apps()
