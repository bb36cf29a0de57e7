"""What a handler's context shows. A new name here is a promise to users: add it deliberately, with a guide."""

from fenceline import BatchContext, BatchItem, Context, SyncBatchContext, SyncContext

NAMES = {
    # What it is about.
    "attempt", "attempt_id", "credentials", "job", "job_id", "kind", "parents", "resume", "tenant", "token",
    # Stopping.
    "cancelled", "raise_if_cancelled", "shutting_down",
    # Log and progress.
    "flush", "items", "log", "phase", "progress",
    # Durable work.
    "checkpoint", "list_steps", "step",
    # Waiting.
    "callback_url", "sleep", "wait_for",
    # Others.
    "enqueue", "enqueue_many", "guard_newer", "lock", "transaction",
}  # fmt: skip


def test_a_context_shows_these_names_and_no_others() -> None:
    assert {name for name in dir(Context) if not name.startswith("_")} == NAMES
    assert {name for name in dir(SyncContext) if not name.startswith("_")} == NAMES
    assert [name for kind in Context.__mro__ for name in getattr(kind, "__slots__", ())] == ["_session"]


def test_a_batch_shows_these_names_and_no_others() -> None:
    names = {"cancelled", "kind", "raise_if_cancelled", "shutting_down", "transaction"}
    assert {name for name in dir(BatchContext) if not name.startswith("_")} == names
    assert {name for name in dir(SyncBatchContext) if not name.startswith("_")} == names
    names = {"args", "attempt", "cancelled", "credentials", "fail", "id", "job", "log", "succeed", "token"}
    assert {name for name in dir(BatchItem) if not name.startswith("_")} == names
