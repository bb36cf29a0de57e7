"""How long finished jobs are kept: an operator's word, the decorator's, the default."""

import asyncpg
import pytest
from tests.sql.queue import Queue


async def rows(queue: Queue, kind: str | None) -> dict[str, tuple[float, str]]:
    found = await queue.rows("retention")
    return {row["status"]: (row["seconds"], row["said_by"]) for row in found if row["kind"] == kind}


async def test_the_default_is_a_week_and_can_be_set(queue: Queue) -> None:
    assert await rows(queue, None) == {None: (604800.0, "default")}
    await queue.call("set_retention", 60.0)
    assert await rows(queue, None) == {None: (60.0, "default")}
    await queue.finished()
    await queue.move_clock(61)
    assert await queue.call("prune") == 1


async def test_an_operators_word_is_per_kind_and_status(queue: Queue) -> None:
    await queue.call("set_retention", 10.0, "work")
    await queue.call("set_retention", 99.0, "work", "failed")
    assert await rows(queue, "work") == {
        "succeeded": (10.0, "operator"),
        "succeeded_with_errors": (10.0, "operator"),
        "failed": (99.0, "operator"),
        "cancelled": (10.0, "operator"),
    }
    await queue.call("set_retention", None, "work", "failed")
    assert (await rows(queue, "work"))["failed"] == (604800.0, "default")
    await queue.call("set_retention", None, "work")
    assert await rows(queue, "work") == {}


async def test_it_survives_a_worker_that_declares_the_kind(queue: Queue) -> None:
    await queue.call("set_retention", 10.0, "work", "failed")
    await queue.call("declare_kinds", {"work": {"retention": {"failed": 20, "succeeded": 30}}})
    said = await rows(queue, "work")
    assert said["failed"] == (10.0, "operator")
    assert said["succeeded"] == (30.0, "decorator")
    assert said["cancelled"] == (604800.0, "default")
    await queue.call("set_retention", None, "work")
    assert (await rows(queue, "work"))["failed"] == (20.0, "decorator")


async def test_it_is_audited(queue: Queue) -> None:
    await queue.call("set_retention", 10.0, "work", "failed", "ada")
    [event] = await queue.events("work")
    assert (event["action"], event["actor"], event["before"], event["after"]) == (
        "retention.change", "ada", None, {"failed": 10},
    )  # fmt: skip


@pytest.mark.parametrize(
    "values, message",
    [
        ((-1.0, "work"), "out of range"),
        ((3e9, "work"), "out of range"),
        ((float("nan"), "work"), "out of range"),
        ((1.0, "work", "queued"), "'queued' is not an end"),
        ((None,), "the default retention is one number"),
        ((1.0, None, "failed"), "the default retention is one number"),
    ],
)
async def test_bad_values_are_refused(queue: Queue, values: tuple[object, ...], message: str) -> None:
    before = await queue.contents()
    with pytest.raises(asyncpg.PostgresError, match=message) as refused:
        await queue.call("set_retention", *values)
    assert refused.value.sqlstate == "FL007"
    assert await queue.contents() == before


async def test_a_bad_kind_is_refused(queue: Queue) -> None:
    with pytest.raises(asyncpg.PostgresError) as refused:
        await queue.call("set_retention", 1.0, "Bad Name")
    assert refused.value.sqlstate == "FL002"
