"""What users see of an app, a handler and a job. A new name is a promise: add it deliberately, with a guide."""

from typing import Any

import pytest

from fenceline import Fenceline, Job

APP = {
    "close", "drain", "dsn", "enqueue", "group", "job", "jobs", "lanes", "lock", "middleware", "migrate", "on_shutdown",
    "on_startup", "run_worker", "schedule", "schedules", "stats", "sync", "system", "watch",
}  # fmt: skip
SYNC_APP = {"close", "dsn", "enqueue", "group", "jobs", "lanes", "lock", "migrate", "schedules", "stats", "system"}
HANDLER = {"enqueue", "enqueue_many", "finalizer", "kind", "options", "snapshot", "sync"}
JOB = {
    "approve", "attempts", "cancel", "children", "created", "delete", "erase_args", "events", "explain", "get", "id",
    "locks", "logs", "move", "phases", "progress", "reject", "reprioritise", "result", "retry", "run_now", "signal",
    "snapshot",
    "status", "steps", "wait", "watch",
}  # fmt: skip


def names_of(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.fixture
def app() -> Fenceline:
    return Fenceline("postgresql://nowhere")


def test_an_app_shows_these_names_and_no_others(app: Fenceline) -> None:
    assert names_of(app) == APP
    assert names_of(app.sync) == SYNC_APP


def test_a_handler_shows_these_names_and_no_others(app: Fenceline) -> None:
    @app.job
    def work() -> None: ...

    assert names_of(work) == HANDLER


def test_a_job_shows_these_names_and_no_others() -> None:
    assert names_of(Job) | {"created"} == JOB
    assert names_of(Job(lambda: None, 1)) == JOB  # type: ignore[arg-type,return-value]  # nothing is asked of it
