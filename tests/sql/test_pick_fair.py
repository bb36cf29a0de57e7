"""Fair lanes: tenants in turn, whatever each has waiting."""

import random
from collections import Counter, deque
from collections.abc import Iterator

import pytest
from tests.sql.queue import Queue


def in_turn(waiting: dict[str, deque[int]], served: str, limit: int) -> Iterator[tuple[str, int]]:
    """Who should be served: one of each tenant with jobs, in the order of names, behind the one served last."""
    count = 0
    names = sorted(waiting)
    turn = deque([name for name in names if name > served] + [name for name in names if name <= served])
    while count < limit and any(waiting.values()):
        name = turn[0]
        turn.rotate(-1)
        if waiting[name]:
            count += 1
            yield name, waiting[name].popleft()


@pytest.mark.parametrize("seed", range(4))
async def test_as_a_model_says_for_any_mix_of_tenants_and_batches(queue: Queue, seed: int) -> None:
    dice = random.Random(seed)
    await queue.set_lane("fair", fair=True)
    waiting: dict[str, deque[int]] = {}
    for number in range(dice.choice([1, 3, 20])):
        tenant = f"t{number:02}"
        many = dice.choice([1, 2, 7, 60])
        made = await queue.rows("enqueue_many", "work", [{}] * many, {"lane": "fair", "tenant": tenant})
        waiting[tenant] = deque(made[0]["job_ids"])
    served = ""
    while any(waiting.values()):
        limit = dice.choice([1, 2, 5, 30, 100])
        expected = list(in_turn(waiting, served, limit))
        claimed = await queue.claim(limit, "fair")
        assert sorted((attempt.tenant, attempt.job_id) for attempt in claimed) == sorted(expected)
        served = expected[-1][0]
    assert await queue.claim(1, "fair") == []


@pytest.mark.parametrize("batch", [1, 7, 100])
async def test_fifty_jobs_beside_five_thousand_are_done_in_the_first_hundredths(queue: Queue, batch: int) -> None:
    """By the order of claims: the fifty are through when at most a hundred, or one batch more, have been claimed."""
    await queue.set_lane("fair", fair=True)
    await queue.rows("enqueue_many", "work", [{}] * 5000, {"lane": "fair", "tenant": "large"})
    await queue.rows("enqueue_many", "work", [{}] * 50, {"lane": "fair", "tenant": "small"})
    order: list[str] = []
    while Counter(order)["small"] < 50:
        attempts = await queue.claim(batch, "fair")
        order += [attempt.tenant for attempt in attempts]
        await queue.rows("finish_attempts", [a.job_id for a in attempts], [a.attempt_id for a in attempts])
    assert len(order) <= 100 + batch
    assert len(order) / 5050 < 0.04
    await queue.set_lane("fair", fair=False)  # without it, by age: the small tenant has to wait its turn
    await queue.rows("enqueue_many", "work", [{}] * 50, {"lane": "fair", "tenant": "small"})
    assert {attempt.tenant for attempt in await queue.claim(1000, "fair")} == {"large"}


async def test_many_at_once_are_ranked_like_one_by_one(queue: Queue) -> None:
    """Enqueued in bulk, in a lane with ageing and fairness, a job's row is the one that place_jobs would write."""
    await queue.set_lane("both", fair=True, ageing_seconds=60)
    one = await queue.enqueue(lane="both", priority=3, tenant="a", expires_at=await queue.at(3600))
    made = await queue.rows("enqueue_many", "work", [{}, {}], {"lane": "both", "priority": 3, "tenant": "a"})
    columns = "priority, own_priority, fair, lane, kind, tenant, number, token, deaths"
    rows = await queue.connection.fetch(f"select job_id, seq, {columns} from fenceline.ready order by seq")
    assert [row["job_id"] for row in rows] == [one, *made[0]["job_ids"]]
    assert len({tuple(row)[2:] for row in rows}) == 1
    assert (rows[0]["priority"], rows[0]["own_priority"], rows[0]["fair"]) == (0, 3, True)
    assert len({row["job_id"] - row["seq"] for row in rows}) == 1
    await queue.move_clock(1)
    urgent = await queue.enqueue(lane="both", priority=4, tenant="a")
    assert await queue.claimed_ids(1, "both") == [urgent]
    assert (await queue.claim_one("both")).priority == 3


async def test_a_large_claim_of_very_many_tenants_goes_on_where_the_last_one_ended(queue: Queue) -> None:
    await queue.set_lane("fair", fair=True)
    for number in range(100):
        await queue.rows("enqueue_many", "work", [{}] * 6, {"lane": "fair", "tenant": f"t{number:02}"})
    first = Counter(attempt.tenant for attempt in await queue.claim(192, "fair"))
    assert first == dict.fromkeys([f"t{number:02}" for number in range(64)], 3)
    second = Counter(attempt.tenant for attempt in await queue.claim(192, "fair"))
    assert set(second) == {f"t{number % 100:02}" for number in range(64, 128)}
    assert sum((first + second).values()) == 384
    rest = Counter(attempt.tenant for attempt in await queue.claim(1000, "fair"))
    rest += Counter(attempt.tenant for attempt in await queue.claim(1000, "fair"))
    assert first + second + rest == dict.fromkeys([f"t{number:02}" for number in range(100)], 6)
