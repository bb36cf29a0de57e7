"""Enqueue by the handler and by name, one and many, with every option."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.client.conftest import Worker
from tests.conftest import Connect

from fenceline import (
    Context,
    Draining,
    EnqueueOptions,
    Fenceline,
    FencelineError,
    InvalidArgs,
    Limited,
    NotFound,
    RefusedError,
    ResourceLocked,
    Retry,
    Status,
)
from fenceline.client.enqueue_options import KNOWN
from fenceline.errors import (
    InvalidMaxAttempts,
    InvalidName,
    InvalidOption,
    InvalidPriority,
    MissingDependency,
    UnknownLane,
)
from fenceline.model.public_id import parse_id

SOON = datetime.now(UTC) + timedelta(days=1)


async def test_a_handler_enqueues_with_its_own_arguments(app: Fenceline) -> None:
    @app.job()
    async def ingest(path: str, chunk: int = 1000) -> None: ...

    job = await ingest.enqueue(path="a", chunk=5)
    record = await job.get()

    assert job.created
    assert record.id == job.id
    assert record.kind == "ingest"
    assert record.args == {"path": "a", "chunk": 5}
    assert record.status is Status.QUEUED
    assert (record.lane, record.priority, record.tenant) == ("default", 0, "default")
    assert (record.attempt, record.max_attempts, record.delivery) == (0, 3, "postgres")


async def test_defaults_of_the_handler_stay_with_the_handler(app: Fenceline) -> None:
    @app.job()
    async def ingest(path: str, chunk: int = 1000) -> None: ...

    job = await ingest.enqueue("a")

    assert (await job.get()).args == {"path": "a"}


async def test_a_kind_of_its_own_name(app: Fenceline) -> None:
    @app.job(kind="files.ingest-2")
    def ingest() -> None: ...

    assert (await (await ingest.enqueue()).get()).kind == "files.ingest-2"


async def test_the_decorator_says_how_its_jobs_run(app: Fenceline, worker: Worker) -> None:
    @app.job(lane="interactive", priority=7, timeout=600, retry=Retry(max_attempts=5, backoff="fixed", base=1.5))
    async def ingest() -> None: ...

    job = await ingest.enqueue()
    record = await job.get()
    stored = await worker.connection.fetchrow(
        "select timeout_seconds, retry ->> 'base' as base from fenceline.job where id = $1", parse_id(job.id)
    )

    assert stored is not None
    assert (record.lane, record.priority, record.max_attempts) == ("interactive", 7, 5)
    assert (stored["timeout_seconds"], stored["base"]) == (600, "1.5")


async def test_options_are_stronger_than_the_decorator(app: Fenceline) -> None:
    @app.job(lane="interactive", priority=7)
    async def ingest() -> None: ...

    record = await (await ingest.options(lane="maintenance", priority=-3).enqueue()).get()

    assert (record.lane, record.priority) == ("maintenance", -3)


async def test_a_handler_is_still_a_function(app: Fenceline) -> None:
    @app.job()
    async def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    assert await double(21) == 42
    assert double.__doc__ == "Twice as much."
    assert repr(double) == "<Handler double>"


async def test_two_handlers_of_one_kind_are_refused(app: Fenceline) -> None:
    @app.job()
    async def ingest() -> None: ...

    with pytest.raises(ValueError, match="kind 'ingest' has two handlers"):

        @app.job(kind="ingest")
        async def another() -> None: ...


async def test_the_decorator_needs_no_parentheses(app: Fenceline) -> None:
    @app.job
    async def ingest(ctx: Context, path: str) -> int:
        return len(path)

    assert (await (await ingest.enqueue(path="a")).get()).args == {"path": "a"}


async def test_the_decorator_takes_a_function_or_settings_by_name(app: Fenceline) -> None:
    with pytest.raises(TypeError, match="decorates a function, not <object"):
        app.job()(object())  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match="no setting lain: use kind, lane, "):
        app.job(lain="interactive")  # type: ignore[call-overload]  # wrong on purpose


async def test_a_number_for_retry_is_how_many_attempts(app: Fenceline, worker: Worker) -> None:
    @app.job(retry=5)
    async def ingest() -> None: ...

    jobs = [await ingest.enqueue(), await ingest.options(retry=7).enqueue()]

    assert [(await job.get()).max_attempts for job in jobs] == [5, 7]
    assert await worker.connection.fetchval("select count(retry) from fenceline.job") == 0
    with pytest.raises(ValueError, match=r"retry 0 is not a policy: use a fenceline\.Retry, or how many attempts"):
        app.job(retry=0)


async def test_a_handler_stands_for_its_kind(app: Fenceline) -> None:
    @app.job(kind="files.ingest", priority=4)
    async def ingest(path: str) -> None: ...

    job = await app.enqueue(ingest, {"path": "a"}, lane="interactive")
    record = await job.get()

    assert (record.kind, record.lane, record.priority, record.args) == ("files.ingest", "interactive", 4, {"path": "a"})
    with pytest.raises(InvalidArgs):
        await app.enqueue(ingest, {"paht": "a"})


# Options -------------------------------------------------------------------------------------------------------


async def test_options_reach_the_job(app: Fenceline) -> None:
    job = await app.enqueue(
        "work",
        {"n": 1},
        lane="interactive",
        priority=10,
        tenant="acme",
        labels={"project": "x"},
        max_attempts=7,
        run_at=SOON,
        expires_at=SOON + timedelta(hours=1),
        identity="someone",
        timeout=12.5,
        snapshot={"config": [1, 2]},
        retry=Retry(backoff=[1, 2, 3]),
    )
    record = await job.get()

    assert (record.lane, record.priority, record.tenant, record.max_attempts) == ("interactive", 10, "acme", 7)
    assert record.labels == {"project": "x"}
    assert record.run_at == SOON
    assert record.status is Status.SCHEDULED


async def test_every_option_is_one_that_the_database_knows(app: Fenceline, worker: Worker) -> None:
    first = await app.enqueue("work")
    given: dict[str, Any] = {
        "lane": "default",
        "priority": 1,
        "run_at": SOON,
        "run_in": 60,
        "expires_at": SOON,
        "dedupe_key": "d",
        "dedupe_until": "finished",
        "idempotency_key": "i",
        "max_attempts": 2,
        "labels": {"a": "b"},
        "resource_lock": "r",
        "key": "k",
        "key_limit": 2,
        "needs_approval": True,
        "snapshot": {"a": 1},
        "requires_hash": "abc",
        "after": [first],
        "identity": "who",
        "runner": "worker-1",
        "tenant": "acme",
        "timeout": 1.0,
        "retry": Retry(),
        "actor": "ann",
        "connection": worker.connection,
    }
    assert given.keys() == KNOWN

    for name, value in given.items():
        needs = {"key_limit": {"key": "k"}, "dedupe_until": {"dedupe_key": "u"}}
        options = {name: value} | needs.get(name, {})
        job = await app.enqueue("work", None, **options)
        assert await job.status() in {Status.QUEUED, Status.SCHEDULED, Status.WAITING, Status.AWAITING_APPROVAL}


async def test_a_dedupe_key_returns_the_job_that_is_there(app: Fenceline) -> None:
    first = await app.enqueue("work", dedupe_key="k")
    second = await app.enqueue("work", dedupe_key="k")

    assert (first.created, second.created) == (True, False)
    assert first == second
    assert len({first, second}) == 1


async def test_a_job_found_in_a_transaction_does_not_start_before_the_commit(
    app: Fenceline, worker: Worker, connect: Connect
) -> None:
    connection = await connect()
    await app.enqueue("work", dedupe_key="k")
    async with connection.transaction():
        assert not (await app.enqueue("work", dedupe_key="k", connection=connection)).created
        assert not (await app.enqueue("work", dedupe_key="k")).created  # a transaction of its own guards nothing
        assert await worker.claim() == {}
    assert len(await worker.claim()) == 1


async def test_a_key_lets_one_job_at_a_time_be_claimed(app: Fenceline, worker: Worker) -> None:
    first = await app.enqueue("work", key="acct:7")
    second = await app.enqueue("work", key="acct:7")
    await worker.connection.execute("select fenceline.maintain()")

    assert await first.status() is Status.QUEUED
    assert await second.status() is Status.WAITING
    assert (await second.get()).waiting_for == "key"


async def test_a_resource_lock_names_its_holder(app: Fenceline) -> None:
    first = await app.enqueue("work", resource_lock="table:1")

    with pytest.raises(ResourceLocked) as refused:
        await app.enqueue("work", resource_lock="table:1")
    assert refused.value.detail == first.id
    assert refused.value.code == "resource_locked"


async def test_after_takes_handles_and_ids_and_single_ones(app: Fenceline) -> None:
    first = await app.enqueue("work")
    second = await app.enqueue("work")
    givens: list[Any] = [
        [first, second.id],
        (first,),
        first,
        first.id,
        {"jobs": [first, second], "policy": "always"},
        {"jobs": first},
    ]
    for given in givens:
        record = await (await app.enqueue("work", after=given)).get()
        assert (record.status, record.waiting_for) == (Status.WAITING, "dependencies")


async def test_after_a_missing_job_is_refused(app: Fenceline) -> None:
    with pytest.raises(MissingDependency):
        await app.enqueue("work", after=["0003-G923-0VQV-SW0"])


async def test_run_in_takes_seconds_or_a_timedelta(app: Fenceline) -> None:
    jobs = [await app.enqueue("work", run_in=wait) for wait in (60, 60.0, timedelta(minutes=1))]

    for record in [await job.get() for job in jobs]:
        assert record.status is Status.SCHEDULED
        assert record.run_at is not None
        assert timedelta(seconds=59) < record.run_at - record.created_at < timedelta(seconds=70)


async def test_a_job_that_needs_approval(app: Fenceline) -> None:
    assert await (await app.enqueue("work", needs_approval=True)).status() is Status.AWAITING_APPROVAL


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"lane": "nowhere"}, UnknownLane, "lane 'nowhere' does not exist"),
        ({"lane": "No Name"}, InvalidName, "lane 'No Name' is not a valid name"),
        ({"tenant": "A"}, InvalidName, "tenant 'A' is not a valid name"),
        ({"priority": 40000}, InvalidPriority, "40000"),
        ({"max_attempts": 0}, InvalidMaxAttempts, "0"),
        ({"run_at": datetime(2030, 1, 1)}, InvalidOption, "use a datetime with a timezone"),  # noqa: DTZ001
        ({"run_at": "tomorrow"}, InvalidOption, "run_at 'tomorrow' is not a moment"),
        ({"prioritty": 1}, InvalidOption, "unknown option prioritty"),
        ({"retry": True}, InvalidOption, "retry True is not a policy"),
        ({"after": [17]}, InvalidOption, r"after \[17\] does not name jobs"),
        ({"after": {"policy": "success"}}, InvalidOption, "after"),
        ({"snapshot": object()}, InvalidOption, "options cannot be written as JSON"),
        ({"snapshot": [float("nan")]}, InvalidOption, "JSON has no NaN"),
        ({"timeout": float("inf")}, InvalidOption, "JSON has no Infinity"),
        ({"key_limit": 2}, InvalidOption, "key_limit is given without a key"),
    ],
)
async def test_an_option_that_breaks_a_rule_is_named(
    app: Fenceline, worker: Worker, options: dict[str, Any], error: type[RefusedError], message: str
) -> None:
    with pytest.raises(error, match=message):
        await app.enqueue("work", {}, **options)

    assert await worker.count_jobs() == 0


async def test_options_of_none_are_left_out(app: Fenceline) -> None:
    options: dict[str, Any] = {"lane": None, "run_at": None, "connection": None}
    assert await (await app.enqueue("work", None, **options)).status() is Status.QUEUED


async def test_a_draining_system_refuses(app: Fenceline) -> None:
    await app.system.drain("an upgrade")
    with pytest.raises(Draining):
        await app.enqueue("work")

    await app.system.resume()
    assert (await app.enqueue("work")).created


async def test_a_tenant_over_its_limit_is_refused_also_in_your_own_transaction(
    app: Fenceline, connect: Connect
) -> None:
    @app.job()
    async def work(n: int) -> None: ...

    await app.system.set_tenant_limit(2, tenant="acme", actor="ann")
    with pytest.raises(Limited, match="tenant 'acme' has 0 unfinished jobs, and 3 more") as refused:
        await work.options(tenant="acme").enqueue_many([{"n": n} for n in range(3)])
    assert refused.value.detail == "acme"
    connection = await connect()
    await connection.execute("create table mine (n int)")
    mine = work.options(tenant="acme", connection=connection)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("insert into mine values (1)")
    await mine.enqueue_many([{"n": n} for n in range(2)])
    with pytest.raises(Limited):
        await mine.enqueue_many([{"n": n} for n in range(3)])
    await transaction.rollback()
    assert (await app.jobs.list(tenant="acme")).items == []
    [default, acme] = await app.system.tenant_limits()
    assert (default.tenant, default.max_jobs, acme.tenant, acme.max_jobs, acme.jobs) == (None, None, "acme", 2, 0)
    assert len(await work.enqueue_many([{"n": n} for n in range(3)])) == 3  # of another tenant


# By name -------------------------------------------------------------------------------------------------------


async def test_by_name_without_the_handler(app: Fenceline) -> None:
    job = await app.enqueue("elsewhere", {"at": SOON, "many": (1, 2)}, priority=3)
    record = await job.get()

    assert record.args == {"at": SOON.isoformat().replace("+00:00", "Z"), "many": [1, 2]}
    assert record.priority == 3


async def test_by_name_without_args(app: Fenceline) -> None:
    assert (await (await app.enqueue("elsewhere")).get()).args == {}


async def test_by_name_with_the_handler_at_hand_validates(app: Fenceline, worker: Worker) -> None:
    @app.job(lane="interactive")
    async def ingest(path: str) -> None: ...

    assert (await (await app.enqueue("ingest", {"path": "a"})).get()).lane == "interactive"
    for args in ({"path": 1}, {}, {"path": "a", "more": 1}, {"self": 1}, {1: 2}, ["a"]):
        with pytest.raises(InvalidArgs):
            await app.enqueue("ingest", args)  # type: ignore[arg-type]  # wrong on purpose
    assert await worker.count_jobs() == 1


@pytest.mark.parametrize("kind", ["", "No Kind", "x" * 65, "a\x00b", "\udc00"])
async def test_a_kind_that_is_no_name_is_refused(app: Fenceline, kind: str) -> None:
    with pytest.raises(FencelineError):
        await app.enqueue(kind)


async def test_args_that_are_no_object_are_refused(app: Fenceline, worker: Worker) -> None:
    with pytest.raises(FencelineError):
        await app.enqueue("work", [1, 2])  # type: ignore[call-overload]  # wrong on purpose
    assert await worker.count_jobs() == 0


# Many ----------------------------------------------------------------------------------------------------------


async def test_many_in_one_statement_in_order(app: Fenceline) -> None:
    @app.job()
    async def ingest(path: str) -> None: ...

    jobs = await ingest.options(priority=4).enqueue_many({"path": str(n)} for n in range(100))
    page = await app.jobs.list(limit=100)

    assert [job.id for job in jobs] == [record.id for record in reversed(page.items)]
    assert [record.args["path"] for record in reversed(page.items)] == [str(n) for n in range(100)]
    assert {record.priority for record in page.items} == {4}
    assert {record.created_at for record in page.items} == {page.items[0].created_at}
    assert all(job.created for job in jobs)


async def test_none_of_many(app: Fenceline) -> None:
    @app.job()
    async def ingest(path: str) -> None: ...

    assert await ingest.enqueue_many([]) == []


async def test_one_bad_of_many_and_nothing_is_enqueued(app: Fenceline, worker: Worker) -> None:
    @app.job()
    async def ingest(path: str) -> None: ...

    with pytest.raises(InvalidArgs, match="path"):
        await ingest.enqueue_many([{"path": "a"}, {"path": 5}])
    with pytest.raises(RefusedError):
        await ingest.enqueue_many([{"path": "a"}, {"path": "\x00"}])
    assert await worker.count_jobs() == 0


async def test_many_with_a_dedupe_key_are_one(app: Fenceline) -> None:
    @app.job()
    async def ingest(path: str) -> None: ...

    jobs = await ingest.options(dedupe_key="k").enqueue_many([{"path": "a"}, {"path": "b"}])

    assert [job.created for job in jobs] == [True, False]
    assert jobs[0] == jobs[1]


async def test_each_of_many_has_options_of_its_own(app: Fenceline, worker: Worker) -> None:
    @app.job(priority=2)
    async def ingest(path: str) -> None: ...

    many = [{"path": text} for text in "abcd"]
    each: list[EnqueueOptions] = [{"key": "k", "labels": {"a": "b"}}, {"dedupe_key": "d"}, {"dedupe_key": "d"}, {}]
    jobs = await ingest.options(lane="interactive").enqueue_many(many, each=each)
    records = [await job.get() for job in jobs]

    assert [job.created for job in jobs] == [True, True, False, True]
    assert jobs[1] == jobs[2]
    assert [(record.args["path"], record.key, record.dedupe_key, record.labels) for record in records] == [
        ("a", "k", None, {"a": "b"}), ("b", None, "d", None), ("b", None, "d", None), ("d", None, None, None),
    ]  # fmt: skip
    assert {(record.lane, record.priority) for record in records} == {("interactive", 2)}
    blocking = ingest.sync.enqueue_many([{"path": "e"}], each=[{"priority": 7}])
    assert blocking[0].get().priority == 7
    assert await worker.count_jobs() == 4


async def test_options_of_each_must_fit(app: Fenceline, worker: Worker) -> None:
    @app.job
    async def ingest(path: str) -> None: ...

    for each, message in (
        ([{}, {}], "2 options for 1 jobs"),
        ([{"actor": "ann"}], "one connection and one actor"),
        ([{"prioritty": 1}], "unknown option prioritty"),
        ([{"key": ""}], "key"),
    ):
        with pytest.raises(InvalidOption, match=message):
            await ingest.enqueue_many([{"path": "a"}], each=each)  # type: ignore[arg-type]  # on purpose
    assert await worker.count_jobs() == 0


async def test_many_with_an_idempotency_key_can_be_sent_again(app: Fenceline, worker: Worker) -> None:
    @app.job()
    async def ingest(path: str) -> None: ...

    many = [{"path": "a"}, {"path": "b"}]
    first = await ingest.options(idempotency_key="k").enqueue_many(many)
    second = await ingest.options(idempotency_key="k").enqueue_many(many)

    assert first == second
    assert [job.created for job in second] == [False, False]
    assert await worker.count_jobs() == 2


# validate= -----------------------------------------------------------------------------------------------------


async def test_validate_sees_the_typed_args_and_may_refuse(app: Fenceline, worker: Worker) -> None:
    seen: list[datetime] = []

    def check(at: datetime, name: str = "") -> None:
        seen.append(at)
        if name == "missing":
            raise NotFound("there is no such thing")
        if name == "bad":
            raise ValueError("no good name")

    @app.job(validate=check)
    async def remind(at: datetime, name: str = "") -> None: ...

    await app.enqueue("remind", {"at": SOON.isoformat()})
    with pytest.raises(NotFound, match="no such thing"):
        await remind.enqueue(at=SOON, name="missing")
    with pytest.raises(ValueError, match="no good name"):
        await remind.enqueue_many([{"at": SOON}, {"at": SOON, "name": "bad"}])

    assert seen == [SOON] * 4
    assert await worker.count_jobs() == 1


async def test_an_async_validate_is_refused_because_nobody_would_await_it(app: Fenceline) -> None:
    async def check() -> None: ...

    with pytest.raises(TypeError, match="is async"):
        app.job(validate=check)
