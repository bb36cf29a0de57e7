"""The app object: connections, event loops, where the database is, what is said when it is not ready."""

import asyncio
import gc
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest
from tests.client.conftest import Worker
from tests.conftest import Connect
from tests.support.patience import eventually, seconds_left

from fenceline import Fenceline, Status
from fenceline.client.app_parts import app_parts
from fenceline.errors import InvalidName, SchemaMissing

OURS_SQL = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'fenceline'"
#: Not of pg_stat_activity, of which a transaction sees but one state.
WAITING_SQL = (
    "select count(*) from pg_locks l join pg_database d on d.oid = l.database "
    "where not l.granted and d.datname = current_database()"
)


async def no_connection_is_left(connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
    async def none() -> bool:
        return int(await connection.fetchval(OURS_SQL)) == 0

    return bool(await eventually(none, "the app's connections are closed"))


async def test_an_async_context_manager_closes_what_it_used(database: str, connect: Connect) -> None:
    connection = await connect()
    async with Fenceline(database) as app:
        assert await connection.fetchval(OURS_SQL) == 0
        await app.enqueue("work")
        await asyncio.to_thread(app.sync.enqueue, "work")
        assert await connection.fetchval(OURS_SQL) == 2

    assert await no_connection_is_left(connection)


async def test_a_closed_app_can_be_used_again(app: Fenceline) -> None:
    job = await app.enqueue("work")
    await app.close()
    await app.close()

    assert await job.status() is Status.QUEUED


async def test_at_most_pool_size_connections(database: str, connect: Connect) -> None:
    connection = await connect()
    async with Fenceline(database, pool_size=3) as app:
        await asyncio.gather(*(app.enqueue("work") for _ in range(50)))

        assert await connection.fetchval(OURS_SQL) <= 3


async def test_a_connection_in_use_is_cut_when_the_app_closes(database: str, worker: Worker) -> None:
    app = Fenceline(database)
    async with worker.connection.transaction():
        await worker.connection.execute("lock table fenceline.job in access exclusive mode")
        enqueue = asyncio.create_task(app.enqueue("work"))

        async def waits() -> bool:
            return bool(await worker.connection.fetchval(WAITING_SQL))

        await eventually(waits, "the connection is in use")
        await app.close()
    await enqueue

    assert await no_connection_is_left(worker.connection)


async def test_each_event_loop_has_its_own_connections(app: Fenceline, worker: Worker) -> None:
    await app.enqueue("work")
    await asyncio.to_thread(asyncio.run, _enqueue_and_close(app))

    assert (await app.enqueue("work")).created
    assert await worker.count_jobs() == 3


async def _enqueue_and_close(app: Fenceline) -> None:
    await app.enqueue("work")
    await app.close()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
async def test_event_loops_that_end_without_close_do_not_pile_up(app: Fenceline, worker: Worker) -> None:
    async def enqueue() -> None:
        await app.enqueue("work")

    for _ in range(10):
        await asyncio.to_thread(asyncio.run, enqueue())
        gc.collect()

    async def are_few() -> bool:  # the server notices the end of a connection in its own time
        return int(await worker.connection.fetchval(OURS_SQL)) <= 2

    await eventually(are_few, "the connections of loops that have ended are closed")
    # Here, where the warnings about them are expected.
    await app.close()
    gc.collect()


async def test_a_database_without_the_schema_says_what_to_run(empty_database: str) -> None:
    async with Fenceline(empty_database) as app:
        for _ in range(2):
            with pytest.raises(SchemaMissing, match="this database has no Fenceline schema: run `fenceline migrate`"):
                await app.enqueue("work")
        with pytest.raises(SchemaMissing):
            await app.jobs.handle("0003-G923-0VQV-SW0").result(timeout=seconds_left())
        with pytest.raises(SchemaMissing):
            app.sync.enqueue("work")

        report = await app.migrate()
        assert report.applied
        assert (await app.enqueue("work")).created


def test_blocking_migrate(empty_database: str) -> None:
    app = Fenceline(empty_database)
    app.sync.migrate()
    assert app.sync.enqueue("work").created
    app.sync.close()


async def test_the_environment_names_the_database(
    database: str, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCELINE_DSN", database)
    async with Fenceline() as app:
        await app.enqueue("work")

    assert await worker.count_jobs() == 1


def test_importing_loads_neither_drivers_nor_pydantic() -> None:
    heavy = ("asyncpg", "pydantic", "psycopg", "sqlalchemy")
    program = f"import sys, fenceline; print([name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "[]"


# Without a DSN -------------------------------------------------------------------------------------------------

EMBEDDED = """
import asyncio
from fenceline import Fenceline

app = Fenceline()

@app.job()
async def greet(name: str) -> str:
    return f"hello {name}"

async def main():
    async with app:
        job = await greet.enqueue(name="world")
        print(await job.status())
        print(greet.sync.enqueue(name="you").status())

asyncio.run(main())
print(app.sync.enqueue("greet", {"name": "them"}).status(), len(app.sync.jobs.list().items))
app.sync.close()
"""


def test_without_a_dsn_there_is_an_embedded_database(tmp_path_factory: pytest.TempPathFactory) -> None:
    # A process of its own: that is how it is used, and what it leaves behind can be seen. A short path, for the socket.
    folder = tmp_path_factory.mktemp("embedded")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", EMBEDDED],
        env={"PATH": "/usr/bin:/bin", "FENCELINE_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds_left(),
    )

    assert (done.stdout.split(), done.stderr) == (["queued", "queued", "queued", "3"], "")
    assert not (Path(folder) / "data" / "postmaster.pid").exists()


@pytest.mark.parametrize("kind", ["Ingest", "two words", "", "x" * 65, "line\n"])
def test_a_kind_is_refused_where_it_is_written(kind: str) -> None:
    app = Fenceline("postgresql://nowhere/")
    with pytest.raises(InvalidName, match="is not a valid name: use 1 to 64 of a-z, 0-9"):
        app.job(kind="fine", aliases=[kind])(lambda: None)
    if kind:

        def work() -> None: ...

        work.__name__ = kind
        with pytest.raises(InvalidName, match="give the handler a kind="):
            app.job()(work)
    with pytest.raises(TypeError, match="use a list of kinds"):
        app.job(aliases="old")
    assert not app_parts(app).handlers
