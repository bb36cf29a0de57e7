"""Enqueue inside the caller's transaction, through every driver that a caller may bring."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import django
import psycopg
import pytest
import sqlalchemy
from django.conf import settings
from django.db.utils import ConnectionHandler
from django.utils.connection import ConnectionProxy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool
from tests.client.conftest import Worker
from tests.conftest import Connect
from tests.support.patience import seconds_left

from fenceline import Fenceline, Handler, Job, ResourceLocked, Status, SyncJob
from fenceline.errors import InvalidJson, UnknownLane
from fenceline.runtime.connections import family_of


@dataclass(frozen=True)
class Transaction:
    """A connection in a transaction, and the two ways out of it."""

    connection: Any
    commit: Callable[[], Awaitable[Any]]
    rollback: Callable[[], Awaitable[Any]]

    async def enqueue(
        self, app: Fenceline, kind: str, args: dict[str, Any] | None = None, **options: Any
    ) -> Job[Any] | SyncJob[Any]:
        """With the verbs that fit the connection."""
        made = (app.sync if self.is_blocking else app).enqueue(kind, args, connection=self.connection, **options)
        return made if isinstance(made, SyncJob) else await made

    async def enqueue_many(
        self, handler: Handler[..., Any], many: list[dict[str, Any]]
    ) -> list[Job[Any]] | list[SyncJob[Any]]:
        optioned = handler.options(connection=self.connection)
        return optioned.sync.enqueue_many(many) if self.is_blocking else await optioned.enqueue_many(many)

    @property
    def is_blocking(self) -> bool:
        return family_of(self.connection) in ("psycopg", "sqlalchemy", "django")


def soon(function: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    """A blocking way out, as an awaitable one."""

    async def do() -> Any:
        return function()

    return do


def engine_url(dsn: str, dialect: str) -> sqlalchemy.URL:
    """The DSN's parts for SQLAlchemy; a folder of sockets travels as `host` in the query."""
    return sqlalchemy.make_url(dsn.replace("postgresql://", f"postgresql+{dialect}://", 1))


@asynccontextmanager
async def of_asyncpg(dsn: str) -> AsyncIterator[Transaction]:
    connection = await asyncpg.connect(dsn)
    transaction = connection.transaction()
    await transaction.start()
    yield Transaction(connection, transaction.commit, transaction.rollback)
    await connection.close()


@asynccontextmanager
async def of_asyncpg_pool(dsn: str) -> AsyncIterator[Transaction]:
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield Transaction(connection, transaction.commit, transaction.rollback)


@asynccontextmanager
async def of_psycopg(dsn: str) -> AsyncIterator[Transaction]:
    with psycopg.connect(dsn) as connection:
        yield Transaction(connection, soon(connection.commit), soon(connection.rollback))


@asynccontextmanager
async def of_psycopg_rows(dsn: str) -> AsyncIterator[Transaction]:
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        yield Transaction(connection, soon(connection.commit), soon(connection.rollback))


@asynccontextmanager
async def of_psycopg_async(dsn: str) -> AsyncIterator[Transaction]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        yield Transaction(connection, connection.commit, connection.rollback)


@asynccontextmanager
async def of_sqlalchemy(dsn: str) -> AsyncIterator[Transaction]:
    engine = sqlalchemy.create_engine(engine_url(dsn, "psycopg"), poolclass=NullPool)
    with engine.connect() as connection:
        yield Transaction(connection, soon(connection.commit), soon(connection.rollback))


@asynccontextmanager
async def of_session(dsn: str) -> AsyncIterator[Transaction]:
    engine = sqlalchemy.create_engine(engine_url(dsn, "psycopg"), poolclass=NullPool)
    with Session(engine) as session:
        yield Transaction(session, soon(session.commit), soon(session.rollback))


@asynccontextmanager
async def of_scoped_session(dsn: str) -> AsyncIterator[Transaction]:
    engine = sqlalchemy.create_engine(engine_url(dsn, "psycopg"), poolclass=NullPool)
    session = scoped_session(sessionmaker(engine))
    yield Transaction(session, soon(session.commit), soon(session.rollback))
    session.remove()


def django_connections(dsn: str) -> Any:
    """As `django.db.connections`, for one database, and one that is none of PostgreSQL's."""
    if not settings.configured:
        settings.configure(LOGGING_CONFIG=None)
        django.setup()
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    return ConnectionHandler(
        {
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                **{name: str(parts.get(part, "")) for name, part in names.items()},
            },
            "other": {"ENGINE": "django.db.backends.sqlite3"},
        }
    )


@asynccontextmanager
async def of_django(dsn: str) -> AsyncIterator[Transaction]:
    # Django refuses to block an event loop unless it is told that this is meant.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    connection = ConnectionProxy(django_connections(dsn), "default")  # what `django.db.connection` is
    connection.set_autocommit(False)
    yield Transaction(connection, soon(connection.commit), soon(connection.rollback))
    connection.close()


def async_engine(dsn: str, dialect: str) -> AsyncEngine:
    return create_async_engine(engine_url(dsn, dialect), poolclass=NullPool)


def of_async_connection(dialect: str) -> "Opener":
    @asynccontextmanager
    async def opener(dsn: str) -> AsyncIterator[Transaction]:
        async with async_engine(dsn, dialect).connect() as connection:
            yield Transaction(connection, connection.commit, connection.rollback)

    return opener


def of_async_session(dialect: str) -> "Opener":
    @asynccontextmanager
    async def opener(dsn: str) -> AsyncIterator[Transaction]:
        async with AsyncSession(async_engine(dsn, dialect)) as session:
            yield Transaction(session, session.commit, session.rollback)

    return opener


@asynccontextmanager
async def of_async_scoped_session(dsn: str) -> AsyncIterator[Transaction]:
    make = async_sessionmaker(async_engine(dsn, "asyncpg"))
    session = async_scoped_session(make, scopefunc=asyncio.current_task)
    yield Transaction(session, session.commit, session.rollback)
    await session.remove()


Opener = Callable[[str], Any]

BLOCKING: dict[str, Opener] = {
    "psycopg": of_psycopg,
    "psycopg, rows as dictionaries": of_psycopg_rows,
    "SQLAlchemy Connection": of_sqlalchemy,
    "SQLAlchemy Session": of_session,
    "SQLAlchemy scoped_session": of_scoped_session,
    "Django": of_django,
}
ASYNC: dict[str, Opener] = {
    "asyncpg": of_asyncpg,
    "asyncpg pool": of_asyncpg_pool,
    "psycopg async": of_psycopg_async,
    "SQLAlchemy AsyncConnection, psycopg": of_async_connection("psycopg"),
    "SQLAlchemy AsyncConnection, asyncpg": of_async_connection("asyncpg"),
    "SQLAlchemy AsyncSession, psycopg": of_async_session("psycopg"),
    "SQLAlchemy AsyncSession, asyncpg": of_async_session("asyncpg"),
    "SQLAlchemy async_scoped_session": of_async_scoped_session,
}
EVERY = BLOCKING | ASYNC

every_driver = pytest.mark.parametrize("opener", EVERY.values(), ids=EVERY)
blocking_drivers = pytest.mark.parametrize("opener", BLOCKING.values(), ids=BLOCKING)
async_drivers = pytest.mark.parametrize("opener", ASYNC.values(), ids=ASYNC)


async def listen(connect: Connect) -> "asyncio.Queue[object]":
    heard: asyncio.Queue[object] = asyncio.Queue()
    connection = await connect()
    await connection.add_listener("fenceline_ready", lambda *notification: heard.put_nowait(notification[-1]))
    return heard


@every_driver
async def test_rollback_leaves_no_job(app: Fenceline, database: str, worker: Worker, opener: Opener) -> None:
    async with opener(database) as transaction:
        job = await transaction.enqueue(app, "work", {"n": 1})
        await transaction.rollback()

    assert job.created
    assert await worker.count_jobs() == 0
    assert await worker.claim() == {}


@every_driver
async def test_commit_makes_it_claimable_and_wakes_a_waiting_worker(
    app: Fenceline, database: str, worker: Worker, connect: Connect, opener: Opener
) -> None:
    heard = await listen(connect)
    await worker.wait_for_work()

    async with opener(database) as transaction:
        job = await transaction.enqueue(app, "work", {"text": "ä €"}, priority=3)
        assert await worker.claim() == {}
        await asyncio.sleep(0.05)
        assert heard.empty()
        await transaction.commit()

        assert await asyncio.wait_for(heard.get(), seconds_left()) == "default"
        await worker.start(job)
    record = await app.jobs.get(job.id)
    assert (record.args, record.priority, record.status) == ({"text": "ä €"}, 3, Status.CLAIMED)


@every_driver
async def test_many_in_the_callers_transaction(app: Fenceline, database: str, worker: Worker, opener: Opener) -> None:
    @app.job(priority=2)
    async def ingest(path: str) -> None: ...

    many = [{"path": text} for text in ("a", 'quo"te', "back\\slash", "{brace}", "ä, €", "100 % :p1 $1")]
    async with opener(database) as transaction:
        await transaction.enqueue_many(ingest, many)
        await transaction.rollback()
    assert await worker.count_jobs() == 0

    async with opener(database) as transaction:
        jobs = await transaction.enqueue_many(ingest, many)
        await transaction.commit()
    assert [(await app.jobs.get(job.id)).args for job in jobs] == many
    assert {(await app.jobs.get(job.id)).priority for job in jobs} == {2}


@every_driver
async def test_refusals_arrive_as_exceptions_of_ours(
    app: Fenceline, database: str, worker: Worker, opener: Opener
) -> None:
    holder = await app.enqueue("work", resource_lock="r")

    async with opener(database) as transaction:
        with pytest.raises(UnknownLane) as unknown:
            await transaction.enqueue(app, "work", lane="nowhere")
        await transaction.rollback()
    async with opener(database) as transaction:
        with pytest.raises(ResourceLocked) as locked:
            await transaction.enqueue(app, "work", resource_lock="r")
        await transaction.rollback()
    async with opener(database) as transaction:
        with pytest.raises(InvalidJson):
            await transaction.enqueue(app, "work", {"text": "\x00"})
        await transaction.rollback()

    with pytest.raises(UnknownLane) as on_the_pool:
        await app.enqueue("work", lane="nowhere")

    # In the same words, whatever the driver wraps around them.
    assert str(unknown.value) == str(on_the_pool.value)
    assert str(unknown.value).startswith("lane 'nowhere' does not exist")
    assert locked.value.detail == holder.id
    assert unknown.value.__cause__ is not None
    assert await worker.count_jobs() == 1


@every_driver
async def test_errors_that_are_not_ours_stay_the_drivers(app: Fenceline, database: str, opener: Opener) -> None:
    async with opener(database) as transaction:
        with pytest.raises(UnknownLane):
            await transaction.enqueue(app, "work", lane="nowhere")
        # The caller's transaction is over, and the driver says so.
        with pytest.raises(Exception, match="current transaction is aborted") as failed:
            await transaction.enqueue(app, "work")
        assert not type(failed.value).__module__.startswith("fenceline")
        await transaction.rollback()


@blocking_drivers
async def test_blocking_verbs_on_a_blocking_connection(
    app: Fenceline, database: str, worker: Worker, opener: Opener
) -> None:
    @app.job()
    def ingest(path: str) -> None: ...

    async with opener(database) as transaction:
        job: SyncJob[None] = ingest.options(connection=transaction.connection).sync.enqueue(path="a")
        assert await worker.count_jobs() == 0
        await transaction.commit()
    await worker.start(job)

    async with opener(database) as transaction:
        app.sync.enqueue("ingest", {"path": "b"}, connection=transaction.connection)
        ingest.options(connection=transaction.connection).sync.enqueue_many([{"path": "c"}])
        await transaction.rollback()
    assert await worker.count_jobs() == 1


@async_drivers
async def test_blocking_verbs_refuse_an_async_connection(app: Fenceline, database: str, opener: Opener) -> None:
    async with opener(database) as transaction:
        with pytest.raises(TypeError, match="is async and cannot be used from blocking code"):
            app.sync.enqueue("work", connection=transaction.connection)
        await transaction.rollback()


@blocking_drivers
async def test_async_verbs_refuse_a_blocking_connection(
    app: Fenceline, database: str, worker: Worker, opener: Opener
) -> None:
    async with opener(database) as transaction:
        with pytest.raises(TypeError, match=r"is blocking and cannot be used from async code: use .* `\.sync`"):
            await app.enqueue("work", connection=transaction.connection)
        await transaction.commit()
    assert await worker.count_jobs() == 0


async def test_what_is_no_connection_is_refused_by_name(app: Fenceline, database: str, worker: Worker) -> None:
    engine = sqlalchemy.create_engine(engine_url(database, "psycopg"), poolclass=NullPool)
    pool = asyncpg.create_pool(database, min_size=0)
    with psycopg.connect(database) as connection, connection.cursor() as cursor:
        for wrong in (object(), "postgresql://", engine, pool, cursor, django_connections(database)["other"]):
            with pytest.raises(TypeError, match="cannot be used as connection: pass an asyncpg or psycopg connection"):
                await app.enqueue("work", connection=wrong)
            with pytest.raises(TypeError, match=type(wrong).__qualname__):
                app.sync.enqueue("work", connection=wrong)
    assert await worker.count_jobs() == 0


async def test_a_job_and_the_callers_rows_commit_together(app: Fenceline, database: str, worker: Worker) -> None:
    await worker.connection.execute("create table orders (id integer primary key, job text)")
    async with async_engine(database, "asyncpg").begin() as connection:
        job = await app.enqueue("ship", {"order": 1}, connection=connection)
        await connection.execute(sqlalchemy.text("insert into orders values (1, :job)"), {"job": job.id})

    assert await worker.connection.fetchval("select job from orders") == job.id
    await worker.start(job)


async def test_a_savepoint_keeps_the_transaction_after_a_refusal(app: Fenceline, database: str, worker: Worker) -> None:
    async with of_asyncpg(database) as transaction:
        with pytest.raises(UnknownLane):
            async with transaction.connection.transaction():
                await app.enqueue("work", lane="nowhere", connection=transaction.connection)
        await app.enqueue("work", connection=transaction.connection)
        await transaction.commit()

    assert await worker.count_jobs() == 1


async def test_django_outside_a_transaction_commits_at_once(app: Fenceline, database: str, worker: Worker) -> None:
    def enqueue() -> None:
        connection = django_connections(database)["default"]
        app.sync.enqueue("work", connection=connection)
        connection.close()

    await asyncio.to_thread(enqueue)
    assert await worker.count_jobs() == 1
