"""How fast lanes are."""

import pytest
from tests.sql.queue import Queue

# $1 ends that are $2 to $3 seconds old, evenly, the oldest first.
ENDS = """
with made as (
  insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args)
  select fenceline.next_id(), 0, 3, 'work', 'default', 'default', '{}' from generate_series(1, $1::integer)
  returning id
), numbered as (select id, row_number() over (order by id) as n from made)
insert into fenceline.history (job_id, ended_at, final, outcome)
select id, fenceline.clock() - make_interval(secs => $2::float8 - n * ($2::float8 - $3::float8) / $1::integer), true,
       'succeeded'
from numbered
"""


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
    await queue.connection.execute(ENDS, 30000, 6, 0)
    (row,) = await queue.rows("lane_rates", 10)
    assert row["per_second"] == pytest.approx(5000, rel=0.05)


async def test_it_looks_at_what_is_new_only(queue: Queue) -> None:
    """A screen asks every second: what ended long ago is not read, nor are partitions probed in vain."""
    await queue.connection.execute(ENDS, 100_000, 5000, 1000)
    await queue.connection.execute("vacuum fenceline.history")
    await queue.connection.execute(ENDS, 1000, 5, 0)
    plan = (await queue.sql("explain (analyze, buffers, format json) select * from fenceline.lane_rates(10)"))[0][
        "Plan"
    ]
    assert plan["Actual Rows"] == 1
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 5000
