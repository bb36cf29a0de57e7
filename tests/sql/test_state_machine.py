"""The SQL functions against a small model, in thousands of random but repeatable steps."""

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.sql.machine import Queue

EXAMPLES, STEPS_PER_EXAMPLE, LEAST_STEPS = 45, 60, 2000

REPEATABLE = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS_PER_EXAMPLE,
    derandomize=True, phases=(Phase.generate,),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_database_agrees_with_model_after_every_step(database: str) -> None:
    Queue.connect(database)
    try:
        run_state_machine_as_test(Queue, settings=REPEATABLE)  # type: ignore[no-untyped-call]
    finally:
        Queue.close()
    print(f"{Queue.steps} steps")  # noqa: T201 - shown with -s and -rP
    assert Queue.steps >= LEAST_STEPS
