"""How fast lanes are."""

import pytest
from tests.sql.queue import Queue


async def test_ends_per_second_by_lane_within_the_span(queue: Queue) -> None:
    await queue.finished()
    await queue.move_clock(60)
    for _ in range(3):
        await queue.finished()
    await queue.finished(lane="system", outcome="failed_for_good")
    retried = await queue.enqueue()
    await queue.run(retried, "failed")  # an attempt, not an end
    rates = {row["lane"]: row["per_second"] for row in await queue.rows("lane_rates", 10)}
    assert rates == {"default": pytest.approx(0.3), "system": pytest.approx(0.1)}
    assert {row["lane"]: row["per_second"] for row in await queue.rows("lane_rates", 100)} == {
        "default": pytest.approx(0.04),
        "system": pytest.approx(0.01),
    }
    await queue.move_clock(60)
    assert await queue.rows("lane_rates", 10) == []


async def test_a_busy_queue_is_measured_by_a_part(queue: Queue) -> None:
    """30,000 ends in 6 seconds: what is looked at covers 4 of them, and the rate is right all the same."""
    await queue.connection.execute(
        """
        with made as (
          insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args)
          select fenceline.next_id(), 0, 3, 'work', 'default', 'default', '{}' from generate_series(1, 30000)
          returning id
        ), numbered as (select id, row_number() over (order by id) as n from made)
        insert into fenceline.history (job_id, ended_at, final, outcome)
        select id, fenceline.clock() - make_interval(secs => 6 - n * 6.0 / 30000), true, 'succeeded' from numbered
        """
    )
    (row,) = await queue.rows("lane_rates", 10)
    assert row["per_second"] == pytest.approx(5000, rel=0.05)
