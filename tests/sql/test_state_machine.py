"""The SQL functions against a small model, in thousands of random but repeatable steps."""

from tests.sql.machine import Queue, run_machine

EXAMPLES, LEAST_STEPS = 160, 2000

#: Moves that must have happened on the way, or the steps were worth little.
MOVES = {
    *("new → ready", "new → timer", "new → key", "new → approval", "new → dependencies"),
    *("ready → running", "timer → ready", "key → ready", "approval → ready", "dependencies → ready"),
    *("running → signal", "signal → ready"),
    *("running → ready", "running → succeeded", "running → succeeded_with_errors"),
    *("running → failed", "running → cancelled", "ready → cancelled", "dependencies → cancelled"),
}


def test_database_agrees_with_model_after_every_step(database: str) -> None:
    run_machine(database, examples=EXAMPLES)
    print(f"{Queue.steps} steps", dict(Queue.seen.most_common()))  # noqa: T201 - pytest -s shows it
    assert Queue.steps >= LEAST_STEPS
    assert set(Queue.seen) >= MOVES
