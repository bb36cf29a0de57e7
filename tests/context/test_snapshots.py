"""Snapshots: what was planned is what runs, or nothing does."""

from typing import Any

import pytest
from tests.conftest import Connect
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import ended, running

from fenceline import Context, Fenceline, Job, Retry
from fenceline.client.app_parts import app_parts
from fenceline.errors import InvalidOption, MissingDependency, RefusedError
from fenceline.model.public_id import format_id, parse_id


class Configuration:
    """What a deployment would read from files; and the ledger of who has acted on it."""

    def __init__(self) -> None:
        self.replicas = 2
        self.applied: list[Any] = []


@pytest.fixture
def configuration() -> Configuration:
    return Configuration()


@pytest.fixture
def app(database: str, configuration: Configuration) -> Fenceline:
    app = Fenceline(database)

    @app.job()
    async def plan(target: str) -> str:
        return f"{target}: {configuration.replicas} replicas"

    @app.job(retry=Retry(max_attempts=3, base=0))
    async def apply(ctx: Context, target: str) -> Any:
        configuration.applied.append(ctx.job.snapshot)
        return ctx.job.snapshot

    @app.job()
    def apply_blocking(target: str) -> None:
        configuration.applied.append(target)

    def current(target: str) -> dict[str, Any]:
        return {"target": target, "replicas": configuration.replicas}

    for handler in (plan, apply, apply_blocking):
        handler.snapshot(current)
    return app


async def hash_of(connect: Connect, job: Job[Any]) -> str:
    connection = await connect()
    found = await connection.fetchval("select snapshot_hash from fenceline.job where id = $1", parse_id(job.id))
    assert isinstance(found, str)
    return found


async def test_what_was_planned_runs(app: Fenceline, configuration: Configuration, connect: Connect) -> None:
    async with running(app):
        planned = await app_parts(app).handlers["plan"].enqueue("web")
        await planned.wait(seconds_left())
        # By the plan's handle, by its hash, by its id in JSON.
        ways: list[Any] = [planned, await hash_of(connect, planned), {"job": planned.id}]
        for required in ways:
            job = await app.enqueue("apply", {"target": "web"}, requires_hash=required)
            assert await job.result(seconds_left()) == {"target": "web", "replicas": 2}
    assert configuration.applied == [{"target": "web", "replicas": 2}] * 3


@pytest.mark.parametrize("kind", ["apply", "apply_blocking"])
@pytest.mark.parametrize("when", ["before the enqueue", "between enqueue and run", "while it awaits approval"])
async def test_a_changed_configuration_runs_nothing(
    app: Fenceline, configuration: Configuration, when: str, kind: str
) -> None:
    planned = await app.enqueue("plan", {"target": "web"})
    if when == "before the enqueue":
        configuration.replicas = 3
    approval = when == "while it awaits approval"
    job = await app.enqueue(kind, {"target": "web"}, requires_hash=planned, needs_approval=approval)
    if approval:
        configuration.replicas = 3
        await job.approve(actor="ann")
    configuration.replicas = 3
    async with running(app):
        record = await ended(job)
    assert record.error is not None
    assert (record.status, record.error["code"]) == ("failed", "plan_hash_mismatch")
    assert "has changed since it was planned" in record.error["message"]
    assert configuration.applied == [], "nothing ran"
    assert record.attempt <= 1, "and it is not tried again"


async def test_a_job_without_a_snapshot_does_not_fit_any_hash(database: str, configuration: Configuration) -> None:
    app = Fenceline(database)
    ran = []

    @app.job()
    async def apply() -> None:
        ran.append(1)

    async with running(app):
        record = await ended(await apply.options(requires_hash="0" * 64).enqueue())
        assert record.error is not None
        assert (record.status, record.error["code"]) == ("failed", "plan_hash_mismatch")
    assert ran == []


async def test_the_hash_of_a_job_that_has_none(app: Fenceline, database: str) -> None:
    with pytest.raises(MissingDependency, match="whose hash is required, does not exist"):
        await app.enqueue("apply", {"target": "web"}, requires_hash=app.jobs.handle(format_id(1)))
    plain = await app.enqueue("something.else")
    with pytest.raises(InvalidOption, match="has no snapshot"):
        await app.enqueue("apply", {"target": "web"}, requires_hash=plain)
    other = await app.enqueue("plan", {"target": "web"}, tenant="acme")
    with pytest.raises(MissingDependency):
        await app.enqueue("apply", {"target": "web"}, requires_hash=other)
    wrong: list[Any] = [7, object(), {"job": "no id"}, {}, {"hash": "x"}]
    for required in wrong:
        with pytest.raises(RefusedError):
            await app.enqueue("apply", {"target": "web"}, requires_hash=required)
    assert len((await app.jobs.list(kind="apply")).items) == 0
    await app.close()


async def test_every_way_to_enqueue_takes_a_snapshot(
    app: Fenceline, configuration: Configuration, connect: Connect
) -> None:
    @app.job()
    async def fan_out(ctx: Context) -> None:
        await ctx.enqueue_many("apply", [{"target": "a"}, {"target": "b"}, {"target": "a"}])
        await ctx.enqueue("apply", {"target": "c"}, snapshot={"own": True})

    apply = app_parts(app).handlers["apply"]
    async with running(app):
        await apply.enqueue_many([{"target": "x"}, {"target": "y"}])
        await apply.enqueue_many([{"target": "z"}, {"target": "z"}])
        apply.sync.enqueue("s")
        async with app.group() as g:
            await g.enqueue("apply", {"target": "g"})
        await (await fan_out.enqueue()).wait(seconds_left())
        records = [record async for record in app.jobs.each(kind="apply")]
        for record in records:
            assert await app.jobs.handle(record.id).wait(seconds_left()) == "succeeded"
    connection = await connect()
    kept = await connection.fetch(
        "select args->>'target' as target, snapshot::text from fenceline.job where kind = 'apply'"
    )
    assert sorted((row["target"], row["snapshot"]) for row in kept) == [
        ("c", '{"own": true}') if target == "c" else (target, f'{{"target": "{target}", "replicas": 2}}')
        for target in ("a", "a", "b", "c", "g", "s", "x", "y", "z", "z")
    ]


async def test_enqueue_many_with_snapshots_can_be_sent_again(app: Fenceline) -> None:
    many = app_parts(app).handlers["apply"].options(idempotency_key="once")
    first = await many.enqueue_many([{"target": "x"}, {"target": "y"}])
    again = await many.enqueue_many([{"target": "x"}, {"target": "y"}])
    assert [job.id for job in first] == [job.id for job in again]
    assert len({job.id for job in first}) == 2
    assert [job.created for job in again] == [False, False]
    await app.close()


async def test_a_provider_that_fails_fails_the_enqueue_or_the_attempt(database: str) -> None:
    app = Fenceline(database)
    broken = False

    @app.job(retry=Retry(max_attempts=1))
    async def apply() -> None: ...

    @apply.snapshot
    def current() -> dict[str, int]:
        if broken:
            raise OSError("no configuration")
        return {"a": 1}

    job = await apply.enqueue()
    required = await apply.options(requires_hash=job).enqueue()
    broken = True
    with pytest.raises(OSError, match="no configuration"):
        await apply.enqueue()
    async with running(app):
        record = await ended(required)
        assert record.error is not None
        assert (record.status, record.error["type"]) == ("failed", "OSError")
    with pytest.raises(TypeError, match="is async"):

        @apply.snapshot
        async def later() -> None: ...
