"""Exceptions that say how an attempt ends, and kinds that were renamed."""

from typing import Any

import pytest
from tests.context.conftest import Work
from tests.context.sample import FLAVOURS
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import ended

from fenceline import Cancel, Context, Fail, Fenceline, RetryLater, Snooze
from fenceline.client.handler_parts import handler_parts

anyhow = pytest.mark.parametrize("flavour", FLAVOURS)


@anyhow
async def test_a_handler_says_how_its_attempt_ends(app: Fenceline, work: Work, flavour: str) -> None:
    async with work():
        jobs = {
            how: await app.enqueue(f"steer.{flavour}", {"how": how})
            for how in ("retry_later", "snooze", "cancel", "fail", "bad_snooze")
        }
        records = {how: await ended(job) for how, job in jobs.items()}
    assert (records["retry_later"].status, records["retry_later"].result) == ("succeeded", "retry_later 2")
    assert (records["snooze"].status, records["snooze"].result) == ("succeeded", "snooze 1"), "it does not count"
    said: dict[str, Any] = {how: (record.error or {}).get("message") for how, record in records.items()}
    assert (records["cancel"].status, said["cancel"]) == ("cancelled", "no longer wanted")
    assert (records["fail"].status, records["fail"].attempt, said["fail"]) == ("failed", 1, "never")
    assert (records["bad_snooze"].status, records["bad_snooze"].attempt) == ("failed", 3), "a mistake like others"
    assert "could not convert string to float" in said["bad_snooze"]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 2e9])
def test_delays_are_checked(seconds: float) -> None:
    with pytest.raises(ValueError, match="is out of range: use 0 to 1000000000 seconds"):
        Snooze(seconds)
    with pytest.raises(ValueError, match="is out of range"):
        RetryLater(after=seconds)
    assert RetryLater().after is None


async def test_a_renamed_kind_keeps_its_old_jobs(app: Fenceline, work: Work) -> None:
    old = await app.enqueue("old.name", {"number": 1})  # before anybody knew the new name

    @app.job(kind="new.name", aliases=["old.name", "older.name"])
    async def renamed(ctx: Context, number: int) -> list[Any]:
        return [ctx.kind, number]

    async with work():
        assert await old.result(timeout=seconds_left()) == ["old.name", 1]
        by_old_name = await app.enqueue("older.name", {"number": 2})
        assert await by_old_name.result(timeout=seconds_left()) == ["new.name", 2], "new jobs have the new name"
        assert await (await renamed.enqueue(number=3)).result(timeout=seconds_left()) == ["new.name", 3]

    with pytest.raises(ValueError, match=r"kind 'old\.name' has two handlers"):
        app.job(kind="old.name")(handler_parts(renamed).function)


def test_reasons_may_be_named() -> None:
    assert str(Cancel(reason="no longer wanted")) == str(Cancel("no longer wanted")) == "no longer wanted"
    assert str(Fail(reason="never")) == str(Fail("never")) == "never"
    assert str(RetryLater(reason="busy")) == "busy"
