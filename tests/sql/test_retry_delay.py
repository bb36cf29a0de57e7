"""How long a failed job waits."""

from typing import Any

import asyncpg
import pytest
from tests.sql.queue import Queue


@pytest.mark.parametrize(
    "policy, expected",
    [
        ({"jitter": 0}, [2, 8, 18, 32]),
        ({"backoff": "quadratic", "base": 3, "jitter": 0}, [3, 12, 27, 48]),
        ({"backoff": "exponential", "base": 5, "jitter": 0}, [5, 10, 20, 40]),
        ({"backoff": "fixed", "base": 7, "jitter": 0}, [7, 7, 7, 7]),
        ({"backoff": [1, 5, 9], "jitter": 0}, [1, 5, 9, 9]),
        ({"backoff": "exponential", "base": 5, "jitter": 0, "max_delay": 15}, [5, 10, 15, 15]),
    ],
    ids=str,
)
async def test_backoffs(queue: Queue, policy: dict[str, Any], expected: list[int]) -> None:
    assert [await queue.call("retry_delay", policy, n) for n in (1, 2, 3, 4)] == expected


async def test_jitter_adds_up_to_its_share_and_never_takes_away(queue: Queue) -> None:
    policy = {"backoff": "fixed", "base": 100, "jitter": 0.5}
    delays = [await queue.call("retry_delay", policy, 1) for _ in range(100)]
    assert all(100 <= delay <= 150 for delay in delays)
    assert max(delays) - min(delays) > 10


async def test_the_default_is_quadratic_with_a_tenth_of_jitter_and_at_most_a_day(queue: Queue) -> None:
    assert 18 <= await queue.call("retry_delay", None, 3) <= 19.8
    assert await queue.call("retry_delay", None, 100000) == 86400


@pytest.mark.parametrize("number", [1, 60, 1000, 32767])
@pytest.mark.parametrize("backoff", ["quadratic", "exponential", "fixed", [1_000_000_000]], ids=str)
async def test_a_policy_that_was_accepted_works_for_every_attempt(queue: Queue, backoff: Any, number: int) -> None:
    policy = {"backoff": backoff, "base": 1_000_000_000, "max_delay": 1_000_000_000, "jitter": 1}
    assert await queue.call("retry_delay", policy, number) <= 1_000_000_000


@pytest.mark.parametrize(
    "policy",
    [
        [], "fixed", 5, {"backof": "fixed"}, {"backoff": "sideways"}, {"backoff": []}, {"backoff": [1, "x"]},
        {"backoff": [1, -1]}, {"backoff": [1, None]}, {"backoff": {}}, {"base": -1}, {"base": "x"}, {"base": 1e308},
        {"jitter": 2}, {"jitter": -0.1}, {"max_delay": -1}, {"max_delay": 1e300}, {"backoff": [1e300]},
    ],
    ids=str,
)  # fmt: skip
async def test_a_policy_that_cannot_be_read_is_refused_at_once(queue: Queue, policy: Any) -> None:
    with pytest.raises(asyncpg.PostgresError) as error:
        await queue.enqueue(retry=policy)
    assert error.value.sqlstate == "FL007"
    assert str(error.value).startswith("retry policy ")
