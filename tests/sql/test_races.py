"""Real sessions that meet at the worst moment. The scenarios themselves also judge the mutants (test_mutants.py)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.sql.claim_scenarios import CLAIM_SCENARIOS
from tests.sql.context_scenarios import CONTEXT_SCENARIOS
from tests.sql.dedupe_scenarios import DEDUPE_SCENARIOS
from tests.sql.end_scenarios import END_SCENARIOS
from tests.sql.gate_scenarios import GATE_SCENARIOS
from tests.sql.isolation_scenarios import ISOLATION_SCENARIOS
from tests.sql.key_scenarios import KEY_SCENARIOS
from tests.sql.lane_scenarios import LANE_SCENARIOS
from tests.sql.lock_scenarios import LOCK_SCENARIOS
from tests.sql.open_scenarios import OPEN_SCENARIOS
from tests.sql.outside_lock_scenarios import OUTSIDE_LOCK_SCENARIOS
from tests.sql.refusal_scenarios import REFUSAL_SCENARIOS
from tests.sql.retry_scenarios import RETRY_SCENARIOS
from tests.sql.sessions import Connect
from tests.sql.trigger_scenarios import TRIGGER_SCENARIOS
from tests.sql.wait_scenarios import WAIT_SCENARIOS
from tests.support.patience import seconds_left

Scenario = Callable[[Connect], Awaitable[None]]


@pytest.mark.parametrize(
    "scenario",
    [
        *CLAIM_SCENARIOS,
        *REFUSAL_SCENARIOS,
        *CONTEXT_SCENARIOS,
        *END_SCENARIOS,
        *GATE_SCENARIOS,
        *ISOLATION_SCENARIOS,
        *KEY_SCENARIOS,
        *LANE_SCENARIOS,
        *LOCK_SCENARIOS,
        *OUTSIDE_LOCK_SCENARIOS,
        *OPEN_SCENARIOS,
        *DEDUPE_SCENARIOS,
        *RETRY_SCENARIOS,
        *TRIGGER_SCENARIOS,
        *WAIT_SCENARIOS,
    ],
    ids=lambda scenario: scenario.__name__,
)
async def test_race(scenario: Scenario, connect: Connect) -> None:
    async with asyncio.timeout(seconds_left()):
        await scenario(connect)
