"""Jobs of different kinds in one statement: a workflow."""

import asyncpg
import pytest
from tests.sql.queue import Queue


async def test_references_may_point_forward(queue: Queue) -> None:
    made = (
        await queue.rows(
            "enqueue_jobs",
            [
                {"kind": "synthesize", "after": ["@a", "@b"]},
                {"kind": "part", "ref": "a", "args": {"n": 1}},
                {"kind": "part", "ref": "b", "after": {"jobs": ["@a"], "policy": "always"}, "priority": 4},
            ],
            "ann",
        )
    )[0]
    synthesize, a, b = made["job_ids"]
    assert made["created"] == [True, True, True]
    assert await queue.statuses([synthesize, a, b]) == ["waiting:dependencies", "queued", "waiting:dependencies"]
    assert (await queue.job(a))["created_by"] == "ann"
    assert (await queue.job(b))["priority"] == 4
    await queue.run(a, "failed_for_good")
    assert await queue.statuses([synthesize, a, b]) == ["cancelled", "failed", "queued"]


async def test_a_fan_in_runs_when_the_last_part_is_done(queue: Queue) -> None:
    jobs = [{"kind": "part", "group": "g", "ref": str(n)} for n in range(4)]
    *parts, whole = (await queue.rows("enqueue_jobs", [*jobs, {"kind": "whole", "after": {"group": "g"}}]))[0][
        "job_ids"
    ]
    attempts = await queue.claim(4)
    await queue.rows("finish_attempts", parts[:3], [attempt.attempt_id for attempt in attempts[:3]])
    assert await queue.status(whole) == "waiting:dependencies"
    await queue.finish(attempts[3])
    assert await queue.status(whole) == "queued"


async def test_ids_of_jobs_that_exist_mix_with_references(queue: Queue) -> None:
    first = await queue.enqueue()
    made = await queue.rows("enqueue_jobs", [{"kind": "a", "ref": "a"}, {"kind": "b", "after": [first, "@a"]}])
    assert await queue.sql("select after from fenceline.job where id = $1", made[0]["job_ids"][1]) == [
        first,
        made[0]["job_ids"][0],
    ]


async def test_defaults_and_args_of_each_job(queue: Queue) -> None:
    made = await queue.rows(
        "enqueue_jobs", [{"kind": "a", "args": {"n": 1}, "defaults": {"lane": "heavy", "priority": 3}}]
    )
    job = await queue.job(made[0]["job_ids"][0])
    assert (job["args"], job["lane"], job["priority"]) == ({"n": 1}, "heavy", 3)


async def test_a_deduplicated_job_can_be_waited_for(queue: Queue) -> None:
    first = await queue.enqueue(dedupe_key="k")
    made = await queue.rows(
        "enqueue_jobs", [{"kind": "a", "ref": "a", "dedupe_key": "k"}, {"kind": "b", "after": ["@a"]}]
    )
    assert made[0]["job_ids"][0] == first
    assert made[0]["created"] == [False, True]
    await queue.run(first)
    assert await queue.status(made[0]["job_ids"][1]) == "queued"


async def test_no_jobs_are_no_mistake(queue: Queue) -> None:
    assert (await queue.rows("enqueue_jobs", []))[0]["job_ids"] == []


async def test_who_waits_for_a_group_waits_for_members_that_come_later(queue: Queue) -> None:
    made = await queue.rows(
        "enqueue_jobs",
        [
            {"kind": "whole", "ref": "w", "after": {"group": "g", "policy": "always"}},
            {"kind": "part", "group": "g", "after": ["@first"]},
            {"kind": "part", "group": "g", "ref": "first"},
        ],
    )
    whole, second, first = made[0]["job_ids"]
    assert await queue.sql("select after from fenceline.job where id = $1", whole) == sorted([first, second])
    await queue.run(first)
    assert await queue.status(whole) == "waiting:dependencies"
    await queue.run(second)
    assert await queue.status(whole) == "queued"


@pytest.mark.parametrize(
    "jobs",
    [
        [{"kind": "a", "ref": "a", "after": ["@a"]}],
        [{"kind": "a", "ref": "a", "after": ["@b"]}, {"kind": "b", "ref": "b", "after": ["@a"]}],
        [{"kind": "a", "after": ["@nowhere"]}],
        [{"kind": "a", "group": "g"}, {"kind": "b", "group": "g", "after": {"group": "g"}}],
        [
            {"kind": "a", "ref": "a", "after": {"group": "g"}},
            {"kind": "b", "group": "g", "after": ["@a"]},
        ],
    ],
    ids=["itself", "each other", "nobody", "its own group", "a group that waits for it"],
)
async def test_waits_that_go_round_are_refused(queue: Queue, jobs: list[dict[str, object]]) -> None:
    before = await queue.contents()
    with pytest.raises(asyncpg.PostgresError) as refused:
        await queue.rows("enqueue_jobs", [*jobs, {"kind": "bystander"}])
    assert refused.value.sqlstate == "FL009"
    assert await queue.contents() == before
