"""The job: maintenance of one table, action by action."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from fenceline import Fenceline, SyncContext, SyncJob
from table_maintenance import LANE
from table_maintenance.actions import ORDER, Action, Rules, run_action
from table_maintenance.catalog import load_table

KEEP_HOURS = 72.0

app = Fenceline()


def must_exist(db: str, table: str, actions: Sequence[str], keep_hours: float) -> None:
    """Raises NotFound before anything is enqueued."""
    load_table(db, table)


# A worker that is told to stop in the middle of an action fails the job; the client decides whether to ask again.
@app.job(lane=LANE, on_shutdown="fail", retry=3, validate=must_exist)
def maintain(
    ctx: SyncContext, db: str, table: str, actions: list[Action], keep_hours: float = KEEP_HOURS
) -> dict[str, dict[str, int]]:
    chosen = [action for action in ORDER if action in actions]
    ctx.list_steps(*chosen)
    rules = Rules(keep_hours, signature={"fenceline.job": ctx.job.id, "fenceline.token": str(ctx.token)})
    results: dict[str, dict[str, int]] = {}
    for done, action in enumerate(chosen):
        ctx.progress(done, len(chosen), action)
        # A step: its result is kept, and before each the worker looks whether the job was cancelled or it is to stop.
        results[action] = ctx.step(action, partial(act, action, db, table, rules))
    return results


def act(action: Action, db: str, table: str, rules: Rules) -> dict[str, int]:
    return run_action(action, load_table(db, table), rules)


def submit(db: str, table: str, actions: list[Action], keep_hours: float = KEEP_HOURS) -> SyncJob[Any]:
    """Lock the table and enqueue, in one transaction. Raises ResourceLocked, Draining and NotFound."""
    options = maintain.options(resource_lock=f"table:{db}.{table}", labels={"db": db, "table": table})
    return options.sync.enqueue(db=db, table=table, actions=actions, keep_hours=keep_hours)
