"""Transactions left open around every verb, in thousands of random but repeatable steps."""

from tests.sql.open_machine import OpenTransactions, run_open_machine

STORMS, LEAST_LOOKS = 100, 4000

#: Verbs that must have been done in a transaction that stayed open, or the storms were worth little.
ANYWHERE = {
    *("enqueue", "enqueue_many", "retry_job", "delete_job", "erase_args"),
    *("cancel_job", "reprioritise_job", "move_job", "run_job_now", "signal_job", "finish_attempt", "drain_system"),
}
READ_COMMITTED = {*ANYWHERE, "approve_job", "reject_job", "set_lane", "delete_lane", "claim_jobs"}


def test_no_acknowledged_job_is_lost_whatever_stays_open(database: str) -> None:
    run_open_machine(database, storms=STORMS)
    seen = OpenTransactions.seen
    print(f"{OpenTransactions.steps} looks", dict(sorted(seen.items())))  # noqa: T201 - pytest -s shows it
    assert OpenTransactions.steps >= LEAST_LOOKS
    assert {verb for verb in READ_COMMITTED if seen[f"{verb} read committed"]} == READ_COMMITTED
    assert {verb for verb in ANYWHERE if seen[f"{verb} repeatable read"]} == ANYWHERE
