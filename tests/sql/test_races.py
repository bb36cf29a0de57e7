"""Real sessions that meet at the worst moment. The scenarios themselves also judge the mutants (test_mutants.py)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.sql.claim_scenarios import CLAIM_SCENARIOS
from tests.sql.context_scenarios import CONTEXT_SCENARIOS
from tests.sql.end_scenarios import END_SCENARIOS
from tests.sql.gate_scenarios import GATE_SCENARIOS
from tests.sql.lock_scenarios import LOCK_SCENARIOS
from tests.sql.sessions import Connect

Scenario = Callable[[Connect], Awaitable[None]]


@pytest.mark.parametrize(
    "scenario",
    [*CLAIM_SCENARIOS, *CONTEXT_SCENARIOS, *END_SCENARIOS, *GATE_SCENARIOS, *LOCK_SCENARIOS],
    ids=lambda scenario: scenario.__name__,
)
async def test_race(scenario: Scenario, connect: Connect) -> None:
    async with asyncio.timeout(60):
        await scenario(connect)
