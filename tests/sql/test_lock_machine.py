"""Named locks against a small model, in a few thousand random but repeatable steps."""

from tests.sql.lock_machine import Locks, run_lock_machine

EXAMPLES = 40

#: What must have happened on the way, or the steps were worth little.
MOVES = {
    *("job holds", "job waits", "outside holds", "outside waits"),
    *("taken from the dead", "a lease was ended", "left, held: True", "left, held: False"),
}


def test_locks_agree_with_the_model_after_every_step(database: str) -> None:
    run_lock_machine(database, examples=EXAMPLES)
    assert Locks.seen >= MOVES
