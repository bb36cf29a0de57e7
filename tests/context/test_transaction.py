"""`ctx.transaction()`: what the handler writes and the job's end commit together, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import UUID

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from tests.conftest import Connect
from tests.context.conftest import Work
from tests.context.sample import FLAVOURS
from tests.support.patience import come, eventually, seconds_left
from tests.worker.in_process_worker import ended

from fenceline import Context, Fenceline, StaleAttempt, SyncContext, WithErrors
from fenceline.client.app_parts import app_parts
from fenceline.context.attempt import Attempt, Report
from fenceline.database import calls
from fenceline.delivery.postgres import PostgresDelivery
from fenceline.errors import InvalidOption
from fenceline.model.outcome import Outcome
from fenceline.runtime import connections

anyhow = pytest.mark.parametrize("flavour", FLAVOURS)
INSERT = "insert into public.paid (job) values ('{}')"


async def count(connect: Connect, table: str) -> int:
    connection = await connect()
    return int(await connection.fetchval(f"select count(*) from {table}"))


@anyhow
async def test_writes_and_end_commit_together(app: Fenceline, work: Work, connect: Connect, flavour: str) -> None:
    async with work():
        for how in ("well", "raises", "fails_after"):
            job = await app.enqueue(f"pay.{flavour}", {"how": how})
            record = await ended(job)
            attempt = 2 if how == "raises" else 1
            assert (record.status, record.attempt, record.result) == ("succeeded", attempt, f"paid {attempt}")
            lines = await job.logs()
            last = [line.message for line in lines if line.token == lines[-1].token]
            assert last == ["before", "within"], "what comes after the end is not kept"
            if how == "raises":
                assert [line.message for line in lines[:2]] == ["before", "after"]
    connection = await connect()
    ran = await connection.fetch("select what from public.ran")
    assert [row["what"] for row in ran] == ["refused: StaleAttempt"] * 3
    assert await count(connect, "public.paid") == 3
    assert await connection.fetchval("select count(*) from fenceline.job where kind = 'child'") == 3


async def test_the_end_does_not_overtake_lines_on_their_way(
    app: Fenceline, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go by the worker's connection, the end by the transaction's."""
    under_way, go_on = asyncio.Event(), asyncio.Event()
    send = PostgresDelivery.report

    async def send_slowly(
        delivery: PostgresDelivery, reports: Sequence[tuple[Attempt, Report]], *, patient: bool = True
    ) -> list[UUID]:
        under_way.set()
        await go_on.wait()
        return await send(delivery, reports, patient=patient)

    monkeypatch.setattr(PostgresDelivery, "report", send_slowly)

    @app.job()
    async def tell(ctx: Context) -> None:
        ctx.log("before")
        await under_way.wait()
        async with ctx.transaction():
            asyncio.get_running_loop().call_later(0.3, go_on.set)

    async with work():
        job = await app.enqueue("tell")
        await ended(job)
        go_on.set()
        assert [line.message for line in await job.logs()] == ["before"]


@pytest.mark.parametrize("flavour", ["async", "def"])
async def test_a_stale_attempt_rolls_back(app: Fenceline, work: Work, connect: Connect, flavour: str) -> None:
    raised: list[BaseException] = []
    mine = await connect()

    @app.job(kind="late.async")
    async def late(ctx: Context) -> None:
        try:
            async with ctx.transaction(mine) as conn:
                await conn.execute(INSERT.format("late"))
                await reclaim()
        except BaseException as error:
            raised.append(error)
            raise

    @app.job(kind="late.def")
    def late_def(ctx: SyncContext) -> None:
        try:
            with ctx.transaction() as conn:
                conn.execute(INSERT.format("late"))
                asyncio.run_coroutine_threadsafe(reclaim(), loop).result()
        except BaseException as error:
            raised.append(error)
            raise

    async def is_told() -> bool:
        return bool(await connection.fetchval("select count(started_at) from fenceline.running"))

    async def reclaim() -> None:
        await eventually(is_told, "the database knows of the start")  # or that is what is refused
        await connection.execute("update fenceline.running set attempt_id = gen_random_uuid()")

    connection = await connect()
    loop = asyncio.get_running_loop()
    async with work():
        await app.enqueue(f"late.{flavour}")

        async def has_raised() -> bool:
            return bool(raised)

        await eventually(has_raised, "the handler is told")
    assert isinstance(raised[0], StaleAttempt)
    assert str(raised[0]).endswith("is gone: everything was rolled back")
    assert await count(connect, "public.paid") == 0
    assert not mine.is_in_transaction(), "and the connection is as it was"


@asynccontextmanager
async def given_async(name: str, dsn: str) -> AsyncIterator[Any]:
    if name == "asyncpg":
        asyncpg_connection = await asyncpg.connect(dsn)
        try:
            yield asyncpg_connection
        finally:
            await asyncpg_connection.close()
    elif name == "psycopg":
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            yield connection
    else:
        driver = name.partition(" ")[2]
        engine = create_async_engine(dsn.replace("postgresql://", f"postgresql+{driver}://"))
        try:
            async with AsyncSession(engine) as session:
                yield session
        finally:
            await engine.dispose()


@pytest.mark.parametrize("name", ["asyncpg", "psycopg", "sqlalchemy asyncpg", "sqlalchemy psycopg"])
async def test_a_connection_of_the_handlers_own(
    app: Fenceline, work: Work, connect: Connect, tables: str, name: str
) -> None:
    @app.job()
    async def own(ctx: Context, how: str) -> str | None:
        async with given_async(name, tables) as given, ctx.transaction(given) as conn:
            text = INSERT.format(how)
            await conn.execute(sqlalchemy.text(text) if "sqlalchemy" in name else text)
            await app.enqueue("elsewhere", {}, connection=conn)
            conn.result = WithErrors(how, ["one"])
            conn.errors = ["two"]
            if how == "fails":
                raise LookupError(how)
        return None

    async with work():
        record = await ended(await app.enqueue("own", {"how": "well"}))
        assert (record.status, record.result, record.errors) == ("succeeded_with_errors", "well", ["two", "one"])
        record = await ended(await app.enqueue("own", {"how": "fails"}, max_attempts=1))
        assert record.error is not None
        assert (record.status, record.error["type"]) == ("failed", "LookupError")
    assert await count(connect, "public.paid") == 1
    assert await count(connect, "fenceline.job where kind = 'elsewhere'") == 1


@contextmanager
def given_blocking(name: str, dsn: str) -> Iterator[Any]:
    if name == "psycopg":
        with psycopg.connect(dsn) as connection:
            yield connection
        return
    engine = sqlalchemy.create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with Session(engine) if name == "session" else engine.connect() as given:
            yield given
    finally:
        engine.dispose()


@pytest.mark.parametrize("name", ["psycopg", "session", "connection"])
async def test_a_blocking_connection_of_the_handlers_own(
    app: Fenceline, work: Work, connect: Connect, tables: str, name: str
) -> None:
    @app.job()
    def own(ctx: SyncContext, how: str) -> str | None:
        with given_blocking(name, tables) as given, ctx.transaction(given) as conn:
            text = INSERT.format(how)
            conn.execute(text if name == "psycopg" else sqlalchemy.text(text))
            app.sync.enqueue("elsewhere", {}, connection=conn)
            conn.result = how
            if how == "fails":
                raise LookupError(how)
        return None

    async with work():
        record = await ended(await app.enqueue("own", {"how": "well"}))
        assert (record.status, record.result) == ("succeeded", "well")
        record = await ended(await app.enqueue("own", {"how": "fails"}, max_attempts=1))
        assert record.status == "failed"
    assert await count(connect, "public.paid") == 1
    assert await count(connect, "fenceline.job where kind = 'elsewhere'") == 1


async def test_connections_that_cannot_be_used(app: Fenceline, work: Work, connect: Connect, tables: str) -> None:
    said: dict[str, str] = {}
    url = tables.replace("postgresql://", "postgresql+psycopg://")
    asyncpg_url = tables.replace("postgresql://", "postgresql+asyncpg://")
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    async_engine = create_async_engine(asyncpg_url, isolation_level="AUTOCOMMIT")
    begun = await connect()
    await begun.execute("begin")

    @app.job()
    async def bad(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(tables, autocommit=True) as connection:
            with psycopg.connect(tables, autocommit=True) as blocking:
                async with AsyncSession(async_engine) as session:
                    for name, given in {
                        "begun": begun,
                        "psycopg": connection,
                        "blocking": blocking,
                        "sqlalchemy": session,
                        "object": object(),
                    }.items():
                        try:
                            async with ctx.transaction(given) as conn:
                                await conn.execute(INSERT.format("bad"))
                        except (InvalidOption, TypeError) as error:
                            said[name] = str(error)

    @app.job()
    def bad_def(ctx: SyncContext) -> None:
        with psycopg.connect(tables, autocommit=True) as connection, Session(engine) as session:
            for name, given in {"def psycopg": connection, "def sqlalchemy": session, "def asyncpg": begun}.items():
                try:
                    with ctx.transaction(given) as conn:
                        conn.execute(INSERT.format("bad"))
                except (InvalidOption, TypeError) as error:
                    said[name] = str(error)

    async with work():
        for kind in ("bad", "bad_def"):
            assert (await ended(await app.enqueue(kind))).status == "succeeded"
    engine.dispose()
    await async_engine.dispose()
    assert said.pop("begun").startswith("the connection is in a transaction already")
    assert said.pop("object").startswith("builtins.object cannot be used as connection")
    assert said.pop("def asyncpg").endswith("use the async verbs, or a blocking connection")
    assert "is blocking and cannot be used from async code" in said.pop("blocking")
    assert set(said) == {"psycopg", "sqlalchemy", "def psycopg", "def sqlalchemy"}
    assert set(said.values()) == {"the connection is in autocommit mode: a transaction needs autocommit off"}
    assert await count(connect, "public.paid") == 0


async def test_more_transactions_than_connections(database: str, tables: str, connect: Connect) -> None:
    """Calls from within the blocks find a connection, although all blocks together take those there are."""
    app = Fenceline(tables, pool_size=2)

    @app.job()
    async def nested(ctx: Context) -> str:
        async with ctx.transaction() as conn:
            async with conn.transaction():  # a savepoint
                await conn.execute(INSERT.format("kept"))
            try:
                async with conn.transaction():
                    await conn.execute("select 1/0")
            except asyncpg.DivisionByZeroError:
                await asyncio.sleep(0.05)
            assert (await app.jobs.get(ctx.job.id)).kind == "nested"
            conn.result = "well"
        return ""

    from tests.worker.in_process_worker import running  # noqa: PLC0415 - a worker of another app

    async with running(app):
        jobs = await nested.enqueue_many([{}] * 12)
        assert [await job.result(timeout=seconds_left()) for job in jobs] == ["well"] * 12
    assert await count(connect, "public.paid") == 12


async def test_a_result_that_does_not_fit_ends_nothing_else(app: Fenceline, work: Work, connect: Connect) -> None:
    @app.job()
    async def unfit(ctx: Context) -> int:
        async with ctx.transaction() as conn:
            await conn.execute(INSERT.format("unfit"))
            conn.result = "text"
        return 1

    @app.job()
    async def large(ctx: Context) -> str:
        async with ctx.transaction() as conn:
            await conn.execute(INSERT.format("large"))
            conn.result = "".join(map(str, range(400_000)))
        return ""

    async with work():
        record = await ended(await app.enqueue("unfit"))
        assert record.error is not None
        assert (record.status, record.error["code"], record.attempt) == ("failed", "invalid_result", 1)
        record = await ended(await app.enqueue("large"))
        assert record.error is not None
        assert (record.status, record.error["code"], record.attempt) == ("failed", "too_large", 1)
    assert await count(connect, "public.paid") == 0


async def test_a_session_that_falls_silent_before_its_commit_is_ended(
    app: Fenceline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the job's end to the commit it holds locks that others need."""
    monkeypatch.setattr(calls.attempts, "COMMIT_SECONDS", 1)
    job = await app.enqueue("work")
    connection = await app_parts(app).database().connect()
    try:
        worker = await connection.fetchval("select fenceline.register_worker('w', 600)")
        [attempt] = await connection.fetch("select job_id, attempt_id from fenceline.claim_jobs($1)", worker)
        transaction = connection.transaction()
        await transaction.start()
        ended_by_server = asyncio.Event()
        connection.add_termination_listener(lambda _connection: ended_by_server.set())
        finish = calls.attempts.finish_attempt(
            attempt["job_id"], attempt["attempt_id"], Outcome.SUCCEEDED, in_transaction=True
        )
        assert await connections.run(connection, finish) == "accepted"
        await come(ended_by_server, "the server has ended the session")
        assert await job.status() == "claimed"
    finally:
        connection.terminate()
