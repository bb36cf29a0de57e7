"""Keys: those who wait behind one cost nothing to the jobs of another. Races are in gate_scenarios.py."""

from typing import Any

from tests.sql.queue import Queue

JOBS = 40


async def blocks_read(queue: Queue, sql: str, *values: Any) -> int:
    """How many blocks a statement looks at: what a machine's mood cannot change."""
    (plan,) = await queue.sql(f"explain (analyze, buffers, format json) {sql}", *values)
    return int(plan["Plan"]["Shared Hit Blocks"]) + int(plan["Plan"]["Shared Read Blocks"])


async def blocks_per_job(queue: Queue, key: str) -> float:
    """Of jobs with a key, one at a time: claim and finish. What earlier jobs left behind does not count."""
    await queue.connection.execute("vacuum")
    await queue.rows("enqueue_many", "work", [{}] * JOBS, {"key": key})
    blocks = 0
    for _ in range(JOBS):
        blocks += await blocks_read(queue, f"select * from fenceline.claim_jobs({queue.worker}, 'default', 10)")
        attempt = await queue.connection.fetchrow(
            "select job_id, attempt_id from fenceline.running where job_id <> 0 "
            "order by token desc, claimed_at desc, job_id desc limit 1"
        )
        assert attempt is not None
        finish = f"select * from fenceline.finish_attempts('{{{attempt['job_id']}}}', '{{{attempt['attempt_id']}}}')"
        blocks += await blocks_read(queue, finish)
    assert await queue.sql("select count(*) from fenceline.held where key = $1", key) == 0
    return blocks / JOBS


async def park(queue: Queue, count: int) -> None:
    await queue.rows("enqueue_many", "work", [{}] * count, {"key": "busy"})
    while await queue.sql("select exists (select 1 from fenceline.key_check)"):
        await queue.maintain()


async def test_jobs_parked_behind_one_key_cost_another_key_nothing(queue: Queue) -> None:
    await queue.connection.execute("alter table fenceline.held set (autovacuum_enabled = off)")
    await blocks_per_job(queue, "warm")
    await queue.enqueue(key="busy", priority=5)
    holder = await queue.claim_one()
    await park(queue, 1000)  # so many that indexes have grown as high as those of many more
    few = await blocks_per_job(queue, "few")
    await park(queue, 3000)
    many = await blocks_per_job(queue, "many")
    assert many <= few * 1.05 + 2, (many, few)
    assert await queue.sql("select count(*) from fenceline.held where key = 'busy'") == 4000
    await queue.finish(holder)
    assert len(await queue.claim(10)) == 1, "and the next of them follows"
    assert await queue.status(holder.job_id) == "succeeded"
