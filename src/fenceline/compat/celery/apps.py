"""The apps of this process and the tasks that they share. Celery has them, so they are here, and nowhere else."""

from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from fenceline.compat.celery.app import Celery
    from fenceline.compat.celery.task import Task


class Apps:
    def __init__(self) -> None:
        self._known: WeakSet[Celery] = WeakSet()
        self._shared: list[Task] = []
        #: The app made last: where shared tasks are sent.
        self.current: Celery | None = None

    def add(self, app: "Celery") -> None:
        self._known.add(app)
        self.current = app
        for task in self._shared:
            app.add_task(task)

    def share(self, task: "Task") -> None:
        self._shared.append(task)
        for app in self._known:
            app.add_task(task)


apps = Apps()
