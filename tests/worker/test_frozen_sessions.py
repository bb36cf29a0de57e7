"""A worker freezes while a large reply is on its way to it: nobody else waits for its session."""

import time

import pytest
from tests.client.proxy import proxied
from tests.support.figures import Figures
from tests.worker.fleet import Fleet, until


async def freeze_in_the_middle_of_a_large_claim(fleet: Fleet) -> float:
    """How long an operator waits for the lane.

    It has slots, so that a claim holds its lock until the last byte of its reply has been sent.
    """
    await fleet.set_lane("interactive", slots=100)
    big = "x" * 100_000
    async with proxied(fleet.dsn) as proxy:
        frozen = await fleet.started("--lease", "10", "--concurrency", "50", dsn=proxy.dsn)
        await fleet.waiting("interactive")
        proxy.stall_at = 150_000
        await fleet.enqueue("carry", {"load": big}, count=40, lane="interactive")

        async def stalled() -> bool:
            return proxy.is_stalled

        await until(stalled, "the reply is on its way, and stops")
        began = time.monotonic()
        await fleet.set_lane("interactive", slots=99)
        waited = time.monotonic() - began
        await fleet.started("--lease", "60", "--concurrency", "50")
        await fleet.ended(40)
        frozen.kill()
    await fleet.each_has_one_final_row(40)
    assert await fleet.scalar("select count(*) from fenceline.history where final and outcome = 'succeeded'") == 40
    return waited


async def test_a_worker_that_freezes_in_the_middle_of_a_large_claim(fleet: Fleet) -> None:
    await freeze_in_the_middle_of_a_large_claim(fleet)


@pytest.mark.timing
async def test_how_long_an_operator_waits_for_a_frozen_claim(fleet: Fleet, figures: Figures) -> None:
    figures.at_most("an operator waits", await freeze_in_the_middle_of_a_large_claim(fleet), 5.0)
