"""Celery's API on Fenceline: `from celery import …` becomes `from fenceline.compat.celery import …`.

    from fenceline.compat.celery import Celery

    app = Celery("shop", include=["shop.tasks"])

It only translates. Queues are lanes, `countdown` and `eta` are `run_in` and `run_at`, chains and chords are jobs that
wait for jobs. The app is a `Fenceline`: `fenceline worker shop:app` runs its tasks, and it can have `@app.job` handlers
too. Whatever Fenceline lacks raises `Unsupported` where it is used. `docs/moving/celery.md` has the table.
"""

from fenceline.compat.celery.absent import refuse_names
from fenceline.compat.celery.app import Celery
from fenceline.compat.celery.canvas import Signature, chain, chord, group, signature
from fenceline.compat.celery.task import Task, shared_task

__all__ = ["Celery", "Signature", "Task", "chain", "chord", "group", "shared_task", "signature", "subtask"]

subtask = signature

#: What else Celery exports, and what to use instead.
ABSENT = {
    "bootsteps": "workers are Fenceline's own: use @app.on_startup and @app.on_shutdown",
    "chunks": "enqueue one task per part, in a group",
    "current_app": "import the app by its name",
    "current_task": "use @app.task(bind=True), and self",
    "uuid": "use uuid.uuid4()",
    "xmap": "use group(task.s(item) for item in items)",
    "xstarmap": "use group(task.s(*item) for item in items)",
}

__getattr__ = refuse_names(__name__, ABSENT)
