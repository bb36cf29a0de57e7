"""A worker freezes while a large reply is on its way to it: nobody else waits for its session."""

import time

from tests.client.proxy import proxied
from tests.worker.fleet import Fleet, until


async def test_a_worker_that_freezes_in_the_middle_of_a_large_claim(fleet: Fleet) -> None:
    """The lane has slots, so that a claim holds its lock until the last byte of its reply has been sent."""
    await fleet.set_lane("interactive", slots=100)
    big = "x" * 100_000
    async with proxied(fleet.dsn) as proxy:
        frozen = await fleet.started("--lease", "3", "--concurrency", "50", dsn=proxy.dsn)
        await fleet.waiting("interactive")
        proxy.stall_at = 150_000
        await fleet.enqueue("carry", {"load": big}, count=40, lane="interactive")

        async def stalled() -> bool:
            return proxy.is_stalled

        await until(stalled, "the reply is on its way, and stops")
        began = time.monotonic()
        await fleet.connection.execute("set lock_timeout = '10s'")
        await fleet.set_lane("interactive", slots=99)
        assert time.monotonic() - began < 5, "an operator does not wait"
        await fleet.started("--lease", "10", "--concurrency", "50")
        await fleet.ended(40, seconds=40)
        frozen.kill()
    await fleet.each_has_one_final_row(40)
    assert await fleet.scalar("select count(*) from fenceline.history where final and outcome = 'succeeded'") == 40
