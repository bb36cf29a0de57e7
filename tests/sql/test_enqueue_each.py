"""Many jobs of one kind in one statement, each with options of its own."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import asyncpg
import pytest
from tests.sql.queue import Queue, use_json
from tests.sql.sessions import Connect, waits_or_ends


async def each(queue: Queue, *own: dict[str, object], **shared: object) -> asyncpg.Record:
    return (await queue.rows("enqueue_each", "work", [{"n": n} for n in range(len(own))], list(own), shared))[0]


async def rows(queue: Queue, made: asyncpg.Record) -> list[asyncpg.Record]:
    return await queue.connection.fetch(
        "select * from fenceline.job where id = any($1) order by array_position($1, id)", made["job_ids"]
    )


async def test_every_job_has_its_own_and_what_all_have(queue: Queue) -> None:
    made = await each(
        queue, {"key": "a"}, {"key": "b", "run_in": 60}, {"expires_at": await queue.at(9)}, {}, {"lane": "system"},
        priority=3, labels={"x": "y"},
    )  # fmt: skip
    jobs = await rows(queue, made)
    assert made["created"] == [True] * 5
    assert made["job_ids"] == sorted(made["job_ids"])
    assert [job["args"]["n"] for job in jobs] == list(range(5))
    assert [job["key"] for job in jobs] == ["a", "b", None, None, None]
    assert [job["lane"] for job in jobs] == ["default"] * 4 + ["system"]
    assert {(job["priority"], job["labels"]["x"]) for job in jobs} == {(3, "y")}
    assert await queue.statuses(made["job_ids"]) == ["waiting:key", "scheduled", "queued", "queued", "queued"]


async def test_what_is_said_for_one_is_stronger_than_what_is_said_for_all(queue: Queue) -> None:
    made = await each(queue, {"priority": 9}, {}, {"key": None}, priority=1, key="k")
    jobs = await rows(queue, made)
    assert [(job["priority"], job["key"]) for job in jobs] == [(9, "k"), (1, "k"), (1, None)]


async def test_a_dedupe_key_finds_a_job_of_the_same_call(queue: Queue) -> None:
    made = await each(queue, {"dedupe_key": "d"}, {"dedupe_key": "e"}, {"dedupe_key": "d"})
    assert made["job_ids"][0] == made["job_ids"][2]
    assert made["created"] == [True, True, False]


@pytest.mark.parametrize("own, shared", [([{"idempotency_key": "a"}, {"idempotency_key": "b"}], {}),
                                         ([{}, {"key": "k"}], {"idempotency_key": "all"})], ids=str)  # fmt: skip
async def test_the_same_call_sent_again_finds_its_jobs(
    queue: Queue, own: list[dict[str, object]], shared: dict[str, object]
) -> None:
    first, again = await each(queue, *own, **shared), await each(queue, *own, **shared)
    assert len(set(first["job_ids"])) == 2
    assert (again["job_ids"], again["created"]) == (first["job_ids"], [False, False])


async def test_all_or_none(queue: Queue) -> None:
    await queue.enqueue(resource_lock="held")
    before = await queue.contents()
    with pytest.raises(asyncpg.PostgresError, match="resource 'held' is locked"):
        await each(queue, {"key": "a"}, {"resource_lock": "held"})
    with pytest.raises(asyncpg.PostgresError, match="1 options for 2 jobs"):
        await queue.rows("enqueue_each", "work", [{}, {}], [{}])
    assert await queue.contents() == before


async def test_a_lane_that_needs_approval_holds_each(queue: Queue) -> None:
    await queue.call("set_lane", "default", {"needs_approval": True})
    made = await each(queue, {"key": "a"}, {})
    assert await queue.statuses(made["job_ids"]) == ["awaiting_approval", "awaiting_approval"]


async def test_each_waits_for_those_of_its_group_before_it(queue: Queue) -> None:
    first = await queue.enqueue(group="g")
    made = await each(queue, {"key": "a"}, {"key": "b"}, group="g", after={"group": "g"})
    jobs = await rows(queue, made)
    assert [job["after"] for job in jobs] == [[first], [first, made["job_ids"][0]]]


@pytest.mark.parametrize("option", ["dedupe_key", "idempotency_key"])
async def test_two_calls_with_the_same_keys_do_not_wait_for_each_other(
    queue: Queue, connect: Connect, option: str
) -> None:
    async def make(queue: Queue, *keys: str) -> list[int]:
        made = await queue.rows("enqueue_each", "work", [{}] * len(keys), [{option: key} for key in keys])
        return list(made[0]["job_ids"])

    one, two = [Queue(await connect(), queue.worker) for _ in range(2)]
    for other in (one, two):
        await use_json(other.connection)
    holding = queue.connection.transaction()
    await holding.start()
    await make(queue, "a", "c")
    forth = asyncio.create_task(make(one, "a", "b"))
    assert await waits_or_ends(queue.connection, one.connection, forth)
    back = asyncio.create_task(make(two, "b", "a"))
    assert await waits_or_ends(queue.connection, two.connection, back)
    await holding.rollback()
    assert await forth == (await back)[::-1]


async def test_none_is_none(queue: Queue) -> None:
    assert not (await each(queue))["job_ids"]


CHOICES: dict[str, tuple[object, ...]] = {
    "dedupe_key": ("a", "b", "taken", "running"),
    "dedupe_until": ("finished", "claimed"),
    "idempotency_key": ("x", "y", "used"),
    "key": ("k", "l"),
    "priority": (3, 7),
    "run_in": (0, 60),
    "expires_at": ("2199-01-01T00:00:00Z",),
    "needs_approval": (True, False),
    "labels": ({"x": "y"},),
    "group": ("g", "h"),
    "after": ({"group": "g"}, []),
    "max_attempts": (1, 9),
    "retry": ({"delay": 5}, "nonsense"),
    "resource_lock": ("r", "s"),
    "lane": ("system",),
    "runner": ("somebody",),
}


def draw(choices: random.Random) -> list[dict[str, object]]:
    """Options of a few jobs: each has a few of those that this call uses at all."""
    names = choices.sample(sorted(CHOICES), choices.randint(1, 4))
    return [
        {name: choices.choice(CHOICES[name]) for name in choices.sample(names, choices.randint(0, len(names)))}
        for _ in range(choices.randint(2, 6))
    ]


async def test_it_makes_what_single_calls_would_make(queue: Queue) -> None:
    await queue.enqueue(dedupe_key="running")
    await queue.claim_one()
    await queue.enqueue(dedupe_key="taken")
    await queue.enqueue(idempotency_key="used", priority=3)

    async def one_by_one(own: list[dict[str, object]]) -> tuple[list[int], list[bool]]:
        made = [await queue.made("work", {}, **options) for options in own]
        return [job["job_id"] for job in made], [job["created"] for job in made]

    async def at_once(own: list[dict[str, object]]) -> tuple[list[int], list[bool]]:
        made = (await queue.rows("enqueue_each", "work", [{}] * len(own), own))[0]
        return made["job_ids"], made["created"]

    choices = random.Random(14)
    answers = []
    for _ in range(120):
        own = draw(choices)
        expected, answer = await undone(queue, one_by_one, own), await undone(queue, at_once, own)
        assert answer == expected, own
        answers.append(answer)
    refused = [answer for answer in answers if isinstance(answer, str)]
    assert len(refused) < len(answers) / 2
    assert {"FL007", "FL013", "FL073"} <= {*refused}


async def undone(
    queue: Queue, enqueue: Callable[[list[dict[str, object]]], Awaitable[tuple[list[int], list[bool]]]],
    own: list[dict[str, object]],
) -> object:  # fmt: skip
    """What a way to enqueue makes, or the code of its refusal; then it is taken back."""
    work = queue.connection.transaction()
    await work.start()
    try:
        before = await queue.sql("select max(id) from fenceline.job")
        ids, created = await enqueue(own)
        order = {job_id: n if job_id > before else job_id for n, job_id in reversed([*enumerate(ids)])}
        rows = await queue.connection.fetch(
            """select id, priority, max_attempts, lane, labels, run_at, expires_at, dedupe_key, dedupe_until, key,
                      key_limit, idempotency_key, resource_lock, needs_approval, group_name, retry, runner,
                      after_policy, after,
                      exists (select 1 from fenceline.deadline d where d.job_id = j.id) as limited,
                      (select r.uses from (select job_id, uses from fenceline.ready union all
                                           select job_id, uses from fenceline.timer union all
                                           select job_id, uses from fenceline.held) r where r.job_id = j.id) as uses
               from fenceline.job j where id > $1 order by id""",
            before,
        )
        made = [
            {**row, "id": order[row["id"]], "after": [order[i] for i in row["after"] or ()]} for row in rows
        ]  # fmt: skip
        return [order[i] for i in ids], created, made, await queue.statuses(ids)
    except asyncpg.PostgresError as error:
        return error.sqlstate
    finally:
        await work.rollback()
