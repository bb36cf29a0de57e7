"""Many jobs of one kind in one statement."""

from tests.sql.queue import Queue


async def test_ids_come_in_the_order_of_the_args_and_grow(queue: Queue) -> None:
    made = (await queue.rows("enqueue_many", "work", [{"n": n} for n in range(50)]))[0]
    assert made["job_ids"] == sorted(made["job_ids"])
    assert made["created"] is None
    assert [attempt.args["n"] for attempt in await queue.claim(50)] == list(range(50))


async def test_options_are_shared_by_all(queue: Queue) -> None:
    made = (await queue.rows("enqueue_many", "work", [{}, {}], {"labels": {"a": "b"}, "priority": 2}))[0]
    for job_id in made["job_ids"]:
        job = await queue.job(job_id)
        assert (job["labels"], job["priority"]) == ({"a": "b"}, 2)


async def test_gates_hold_for_each(queue: Queue) -> None:
    made = (await queue.rows("enqueue_many", "work", [{}, {}], {"key": "k"}))[0]
    assert made["created"] == [True, True]
    assert await queue.statuses(made["job_ids"]) == ["waiting:key", "waiting:key"]


async def test_a_dedupe_key_makes_one_job_of_many(queue: Queue) -> None:
    made = (await queue.rows("enqueue_many", "work", [{}, {}], {"dedupe_key": "k"}))[0]
    assert made["job_ids"][0] == made["job_ids"][1]
    assert made["created"] == [True, False]


async def test_ids_of_one_call_grow_where_the_sequence_begins_anew(queue: Queue) -> None:
    await queue.sql("select setval('fenceline.job_id', (1 << 22) - 10)")
    for options in ({}, {"priority": 1}):
        ids = (await queue.rows("enqueue_many", "work", [{}] * 20, options))[0]["job_ids"]
        assert ids == sorted(set(ids))
        await queue.sql("select setval('fenceline.job_id', (1 << 23) - 10)")
        await queue.move_clock(1)


async def test_none_is_none(queue: Queue) -> None:
    assert not (await queue.rows("enqueue_many", "work", []))[0]["job_ids"]
    assert not (await queue.rows("enqueue_many", "work", [], {"priority": 1}))[0]["job_ids"]
