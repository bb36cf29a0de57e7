import pytest

# Not test modules by name, but full of assertions that should explain themselves.
pytest.register_assert_rewrite(
    "tests.sql.machine",
    "tests.sql.machine_base",
    "tests.sql.observed",
    "tests.sql.claim_scenarios",
    "tests.sql.end_scenarios",
    "tests.sql.gate_scenarios",
    "tests.sql.worker_scenarios",
)
