"""Celery's signals. Fenceline has none, and each name says what to use instead."""

from fenceline.compat.celery.absent import refuse_names

WORKER = "use @app.on_startup or @app.on_shutdown, which run once per worker process"
TASK = "use @app.middleware, which runs around every task"

__getattr__ = refuse_names(
    __name__,
    {
        **dict.fromkeys(("before_task_publish", "after_task_publish"), "look at the job where it is enqueued"),
        **dict.fromkeys(
            (
                "task_prerun", "task_postrun", "task_retry", "task_success", "task_failure", "task_internal_error",
                "task_received", "task_revoked", "task_unknown", "task_rejected",
            ),
            TASK,
        ),
        **dict.fromkeys(
            (
                "worker_init", "worker_ready", "worker_shutdown", "worker_shutting_down", "worker_process_init",
                "worker_process_shutdown", "celeryd_init", "celeryd_after_setup", "beat_init", "beat_embedded_init",
            ),
            WORKER,
        ),
        **dict.fromkeys(("setup_logging", "after_setup_logger", "after_setup_task_logger"), "configure `logging`"),
    },
)  # fmt: skip
