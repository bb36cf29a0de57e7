"""Workflows with a worker: plan → subtasks → synthesize, fan-out from inside, approval, propagation."""

import asyncio
import re
from typing import Any

import pytest
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import ended, running

from fenceline import Context, Fenceline, JobCancelled, Retry, SyncContext, WithErrors
from fenceline.client.app_parts import app_parts

ONCE = Retry(max_attempts=1)


@pytest.fixture
def app(database: str) -> Fenceline:
    return Fenceline(database)


def told(ctx: Context | SyncContext) -> list[dict[str, Any]]:
    """What a handler can know of the jobs that it waited for."""
    return [
        {
            "id": parent.id,
            "kind": parent.kind,
            "status": parent.status,
            "args": parent.args,
            "labels": parent.labels,
            "result": parent.result,
            "error": None if parent.error is None else parent.error["message"],
            "errors": parent.errors,
        }
        for parent in ctx.parents
    ]


def add_subtasks(app: Fenceline) -> None:
    @app.job(retry=ONCE)
    async def subtask(part: int) -> Any:
        if part == 2:
            raise RuntimeError("part 2 is broken")
        if part == 3:
            return WithErrors({"part": 3}, ["a page was missing"])
        return {"part": part}

    @app.job()
    async def synthesize(ctx: Context, topic: str) -> dict[str, Any]:
        return {"topic": topic, "parents": told(ctx)}

    @app.job()
    def synthesize_blocking(ctx: SyncContext, topic: str) -> dict[str, Any]:
        return {"topic": topic, "parents": told(ctx)}


@pytest.mark.parametrize("kind", ["synthesize", "synthesize_blocking"])
async def test_plan_subtasks_synthesize_with_a_failing_subtask(app: Fenceline, kind: str) -> None:
    add_subtasks(app)

    @app.job()
    async def plan(ctx: Context, topic: str) -> list[str]:
        parts = await ctx.enqueue_many("subtask", [{"part": n} for n in (1, 2)], labels={"of": topic})
        parts.append(await ctx.enqueue(app_parts(app).handlers["subtask"], {"part": 3}))
        whole = await ctx.enqueue(kind, {"topic": topic}, after={"jobs": parts, "policy": "always"})
        strict = await ctx.enqueue(kind, {"topic": topic}, after=parts)
        return [whole.id, strict.id, *(part.id for part in parts)]

    async with running(app):
        planned = await plan.enqueue("fences")
        whole, strict, *parts = await planned.result(seconds_left())
        result = await app.jobs.handle(whole).result(seconds_left())
        with pytest.raises(JobCancelled, match=re.escape(parts[1])):
            await app.jobs.handle(strict).result(seconds_left())
        assert {(await app.jobs.get(child)).parent for child in (whole, strict, *parts)} == {planned.id}
    common: dict[str, Any] = {"kind": "subtask", "labels": {"of": "fences"}, "error": None, "errors": None}
    assert result == {
        "topic": "fences",
        "parents": [
            {**common, "id": parts[0], "status": "succeeded", "args": {"part": 1}, "result": {"part": 1}},
            {
                **common,
                "id": parts[1],
                "status": "failed",
                "args": {"part": 2},
                "result": None,
                "error": "part 2 is broken",
            },
            {
                **common,
                "id": parts[2],
                "labels": None,
                "status": "succeeded_with_errors",
                "args": {"part": 3},
                "result": {"part": 3},
                "errors": ["a page was missing"],
            },
        ],
    }


async def test_a_group_and_what_follows_it(app: Fenceline) -> None:
    add_subtasks(app)
    async with running(app):
        async with app.group() as g:
            await g.enqueue_many("subtask", [{"part": n} for n in range(1, 5)])
            whole = await g.then("synthesize", {"topic": "groups"}, policy="always")
            never = await g.then("synthesize", {"topic": "groups"})
        assert [str(status) for status in await g.wait(seconds_left())] == [
            "succeeded",
            "failed",
            "succeeded_with_errors",
            "succeeded",
        ]
        result = await whole.result(seconds_left())
        assert [(parent["id"], parent["status"]) for parent in result["parents"]] == [
            (job.id, str(await job.status())) for job in g.jobs
        ]
        record = await ended(never)
        assert record.error is not None
        assert (record.status, record.error["code"]) == ("cancelled", "dependency_failed")


async def test_a_retried_fan_in_sees_its_parents_and_their_retries(app: Fenceline) -> None:
    fail = True

    @app.job(retry=ONCE)
    async def part(n: int) -> int:
        if n == 7 and fail:
            raise RuntimeError("not yet")
        return n

    @app.job(retry=ONCE)
    async def total(ctx: Context) -> int:
        return sum(parent.result for parent in ctx.parents)

    async with running(app):
        async with app.group() as g:
            parts = await g.enqueue_many(part, [{"n": n} for n in range(100)])
            strict = await g.then(total)
        assert await strict.wait(seconds_left()) == "cancelled"
        await asyncio.gather(*(job.wait(seconds_left()) for job in parts))
        fail = False
        await parts[7].retry()
        again = await strict.retry()
        assert await again.result(seconds_left()) == sum(range(100))
        assert await (await again.retry()).result(seconds_left()) == sum(range(100))


async def test_failure_and_cancel_go_down_the_chain(app: Fenceline) -> None:
    add_subtasks(app)

    @app.job()
    async def wait_for_ever() -> None:
        await asyncio.sleep(3600)

    async with running(app):
        for cause in ("failed", "cancelled"):
            first = await app.enqueue(*(("subtask", {"part": 2}) if cause == "failed" else ("wait_for_ever", {})))
            second = await app.enqueue("subtask", {"part": 1}, after=[first])
            third = await app.enqueue("subtask", {"part": 1}, after=second)
            always = await app.enqueue("synthesize", {"topic": cause}, after={"jobs": [second], "policy": "always"})
            if cause == "cancelled":
                await first.cancel(force=True)
            assert await first.wait(seconds_left()) == cause
            assert await second.wait(seconds_left()) == await third.wait(seconds_left()) == "cancelled"
            [parent] = (await always.result(seconds_left()))["parents"]
            assert (parent["id"], parent["status"]) == (second.id, "cancelled")
            assert first.id in parent["error"]


async def test_children_of_a_failed_attempt_do_not_come_to_be(app: Fenceline) -> None:
    add_subtasks(app)

    @app.job(retry=Retry(max_attempts=2, base=0))
    async def plan(ctx: Context) -> str:
        child = await ctx.enqueue("subtask", {"part": ctx.attempt})
        if ctx.attempt == 1:
            raise RuntimeError("not yet")
        return child.id

    async with running(app):
        child = await (await plan.enqueue()).result(seconds_left())
        page = await app.jobs.list(kind="subtask")
        assert [(record.id, record.args) for record in page.items] == [(child, {"part": 2})]


async def test_a_child_that_cannot_be_made_fails_its_parent_and_nobody_else(app: Fenceline) -> None:
    """What `after` names is looked up when the children come to be, with the end of their parent."""
    add_subtasks(app)

    @app.job()
    async def plan(ctx: Context, after: str) -> None:
        await ctx.enqueue("subtask", {"part": 1})
        await ctx.enqueue("subtask", {"part": 1}, after=[after])

    async with running(app):
        forgotten = await ended(await app.enqueue("subtask", {"part": 1}))
        await app.jobs.handle(forgotten.id).delete()
        gone = forgotten.id
        bystander = await app.enqueue("subtask", {"part": 1})
        record = await ended(await plan.enqueue(gone))
        assert record.error is not None
        assert (record.status, record.error["code"]) == ("failed", "missing_dependency")
        assert gone in record.error["message"]
        assert await bystander.wait(seconds_left()) == "succeeded"
        assert len((await app.jobs.list(kind="subtask")).items) == 1


async def test_approval_from_end_to_end(app: Fenceline) -> None:
    ran: list[str] = []

    @app.job()
    async def deploy(ctx: Context, version: str) -> str:
        ran.append(version)
        return f"deployed {version}"

    async with running(app):
        approved = await deploy.options(needs_approval=True).enqueue("1")
        rejected = await deploy.options(needs_approval=True).enqueue("2")
        follower = await app.enqueue("deploy", {"version": "3"}, after=[rejected])
        plain = await deploy.enqueue("0")
        assert await plain.result(seconds_left()) == "deployed 0"
        assert [str(await job.status()) for job in (approved, rejected)] == ["awaiting_approval"] * 2
        assert await approved.approve("looks good", actor="ann") == "queued"
        assert await approved.result(seconds_left()) == "deployed 1"
        assert await rejected.reject("not on a Friday", actor="bob") == "cancelled"
        with pytest.raises(JobCancelled, match="not on a Friday"):
            await rejected.result(seconds_left())
        record = await rejected.get()
        assert record.error is not None
        assert record.error["code"] == "rejected"
        assert await follower.wait(seconds_left()) == "cancelled"
        # The same from blocking code.
        again = await asyncio.to_thread(deploy.options(needs_approval=True).sync.enqueue, "4")
        await asyncio.to_thread(again.approve, actor="ann")
        assert await asyncio.to_thread(again.result, seconds_left()) == "deployed 4"
    assert ran == ["0", "1", "4"]
