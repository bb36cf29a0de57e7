"""What the server asks of PostgreSQL has an end, and a tenant's share of it a bound."""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from tests.conftest import Connect
from tests.server.attacks.victim import Bystander, Victim, bystander, running, token_of
from tests.server.conftest import make_token
from tests.server.conftest import running as running_api
from tests.server.watching import Watcher, serving
from tests.support.figures import Figures
from tests.support.patience import eventually, seconds_left

from fenceline import Fenceline
from fenceline.model.signature import sign
from fenceline.runtime.database import Database
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings

SECRET = "a secret of the tests' own"  # noqa: S105 - that is what it is
#: For every element it looks at every element: no `**`, and still for ever.
ENDLESS = "$.a[*] ? (exists ($.a[*] ? (@ == 2)))"
#: Of a bystander's requests, while others attack.
MAX_SECONDS = 0.5
#: Pairs of a bystander's requests: for a percentile, and to see that it goes on.
ENOUGH, SOME = 200, 20
FLOOD = Path(__file__).parent / "flood.py"

pytestmark = pytest.mark.xdist_group("attacks")


@asynccontextmanager
async def client_of(victim: Victim, database: str, tenant: str = "attacker") -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {await token_of(database, tenant=tenant)}"}
    limits = httpx.Limits(max_connections=50)
    async with httpx.AsyncClient(base_url=victim.url, headers=headers, timeout=seconds_left(), limits=limits) as client:
        yield client


async def fire(client: httpx.AsyncClient, body: bytes, at: int) -> httpx.Response:
    headers = {
        "Content-Type": "application/json",
        "Fenceline-Timestamp": str(at),
        "Fenceline-Signature": sign(SECRET, at, body),
    }
    return await client.post("/v1/triggers/push", content=body, headers=headers)


async def endless_statements(client: httpx.AsyncClient) -> list[httpx.Response]:
    body = {"name": "push", "kind": "build", "secret": SECRET, "map": {"x": ENDLESS}}
    assert (await client.post("/v1/triggers", json=body)).status_code in (201, 409)
    payload = json.dumps({"a": [1] * 60_000}).encode()
    now = int(time.time())
    return await asyncio.gather(*(fire(client, payload, now + n) for n in range(12)))


@asynccontextmanager
async def open_transaction(connection: "asyncpg.Connection[asyncpg.Record]", tenant: str) -> AsyncIterator[None]:
    """Somebody's program has enqueued with a dedupe key, and does not come to its commit."""
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(
        "select fenceline.enqueue('build', '{}', p_options => $1)",
        json.dumps({"dedupe_key": "held", "tenant": tenant}),
    )
    try:
        yield
    finally:
        await transaction.rollback()


async def enqueue_held(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/v1/jobs", json={"kind": "build", "dedupe_key": "held"})


def are_busy(answers: list[httpx.Response]) -> None:
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(503, "busy")}
    assert all(int(answer.headers["retry-after"]) > 0 for answer in answers)


async def settle(by: Bystander, pairs: int) -> None:
    """Until the bystander has been seen so often, from now on."""
    wanted = len(by.seconds) + pairs

    async def seen() -> bool:
        return len(by.seconds) >= wanted

    await eventually(seen, f"{wanted} pairs of requests of the bystander", lambda: len(by.seconds))


async def behind_stuck_statements(database: str, folder: Path, pairs: int) -> Bystander:
    with running(database, folder, "--statement-seconds", "5") as victim:
        async with client_of(victim, database) as attacker, bystander(victim, database) as by:
            are_busy(await endless_statements(attacker))
            await settle(by, pairs)
    return by


async def behind_an_open_transaction(
    database: str, folder: Path, connection: "asyncpg.Connection[asyncpg.Record]", pairs: int
) -> Bystander:
    with running(database, folder, "--lock-seconds", "5") as victim:
        async with client_of(victim, database) as attacker:
            async with bystander(victim, database) as by, open_transaction(connection, "attacker"):
                are_busy(await asyncio.gather(*(enqueue_held(attacker) for _ in range(12))))
                await settle(by, pairs)
            assert (await enqueue_held(attacker)).status_code == 202
    return by


async def behind_long_enqueues(database: str, folder: Path, pairs: int) -> Bystander:
    """Each names 180,000 jobs to wait for, which is seconds of the database's time; the next comes at once."""
    with running(database, folder) as victim:
        async with client_of(victim, database) as attacker:
            jobs = [(await attacker.post("/v1/jobs", json={"kind": "a"})).json()["id"] for _ in range(20)]
            body = json.dumps({"kind": "a", "after": jobs * 9000}).encode()
            answered = 0

            async def attack() -> None:
                nonlocal answered
                while True:
                    answer = await attacker.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
                    assert answer.status_code in (202, 503), answer.text
                    answered += 1

            async def are_under_way() -> bool:
                return answered > 0

            attacks = [asyncio.create_task(attack()) for _ in range(4)]
            try:
                async with bystander(victim, database) as by:
                    await eventually(are_under_way, "the answer to an attack; the next has come by then")
                    await settle(by, pairs)
            finally:
                for task in attacks:
                    task.cancel()
                ended = await asyncio.gather(*attacks, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in ended), ended
    return by


async def behind_slow_heads_and_bodies(database: str, folder: Path, pairs: int) -> Bystander:
    """Header bytes without end, half a head, half a body: each connection is replaced as soon as it is cut."""
    limits = ("--header-seconds", "5", "--body-seconds", "5", "--connections-per-address", "300")
    with running(database, folder, *limits) as victim:
        token = await token_of(database, tenant="attacker")
        flood = await asyncio.create_subprocess_exec(
            sys.executable, str(FLOOD), str(victim.port), token, stdout=asyncio.subprocess.PIPE
        )
        try:
            async with bystander(victim, database) as by:
                assert flood.stdout is not None
                async with asyncio.timeout(seconds_left()):
                    cut = {(await flood.stdout.readline()).strip() for _ in range(3)}
                assert cut == {b"0", b"1", b"2"}, "some of each kind were cut"
                await settle(by, pairs)
            assert flood.returncode is None
        finally:
            with contextlib.suppress(ProcessLookupError):
                flood.kill()
            await flood.communicate()
    return by


def goes_on(by: Bystander) -> None:
    assert by.statuses == {202, 200}


def is_undisturbed(by: Bystander, figures: Figures) -> None:
    goes_on(by)
    figures.at_least("pairs of requests of a bystander", len(by.seconds), ENOUGH, "pairs")
    figures.at_most("p99 of a bystander's requests", by.p99, MAX_SECONDS)


async def test_a_stuck_statement(database: str, tmp_path: Path) -> None:
    goes_on(await behind_stuck_statements(database, tmp_path, SOME))


@pytest.mark.timing
async def test_a_stuck_statement_delays_nobody_else(database: str, tmp_path: Path, figures: Figures) -> None:
    is_undisturbed(await behind_stuck_statements(database, tmp_path, ENOUGH), figures)


async def test_an_open_transaction(database: str, tmp_path: Path, connect: Connect) -> None:
    goes_on(await behind_an_open_transaction(database, tmp_path, await connect(), SOME))


@pytest.mark.timing
async def test_an_open_transaction_delays_nobody_else(
    database: str, tmp_path: Path, connect: Connect, figures: Figures
) -> None:
    is_undisturbed(await behind_an_open_transaction(database, tmp_path, await connect(), ENOUGH), figures)


@pytest.mark.timeout(1800)  # each enqueue is much work for the database
async def test_enqueues_that_take_long(database: str, tmp_path: Path) -> None:
    goes_on(await behind_long_enqueues(database, tmp_path, SOME))


@pytest.mark.timing
@pytest.mark.timeout(1800)
async def test_enqueues_that_take_long_delay_nobody_else(database: str, tmp_path: Path, figures: Figures) -> None:
    is_undisturbed(await behind_long_enqueues(database, tmp_path, ENOUGH), figures)


async def test_headers_and_slow_bodies(database: str, tmp_path: Path) -> None:
    goes_on(await behind_slow_heads_and_bodies(database, tmp_path, SOME))


@pytest.mark.timing
async def test_headers_and_slow_bodies_delay_nobody_else(database: str, tmp_path: Path, figures: Figures) -> None:
    is_undisturbed(await behind_slow_heads_and_bodies(database, tmp_path, ENOUGH), figures)


async def test_streams_wait_their_tenants_turn(
    queue_app: Fenceline, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    """However many a tenant opens at once, the others have their part of the connections."""
    job = await (await connect()).fetchval("select fenceline.public_id(job_id) from fenceline.enqueue('a')")
    under_way, most = 0, 0
    call = Database.call

    async def watched(self: Database, wanted: Any, connection: Any = None) -> Any:
        nonlocal under_way, most
        if not any(name in wanted.sql for name in ("followed_", "journal", "is_settled")):
            return await call(self, wanted, connection)
        under_way += 1
        most = max(most, under_way)
        try:
            await asyncio.sleep(0.02)
            return await call(self, wanted, connection)
        finally:
            under_way -= 1

    async def shown(watcher: Watcher) -> None:
        await watcher.until(lambda: job in [data["id"] for data in watcher.of("status")])

    settings = ServerSettings(maintain=False, deliver=False, tenant_connections=2, statement_seconds=seconds_left())
    headers = {"Authorization": f"Bearer {await make_token(queue_app, 'viewer')}"}
    async with running_api(create_app(settings, queue_app)) as api, serving(api) as url:
        monkeypatch.setattr(Database, "call", watched)
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=seconds_left()) as client:
            for path in (f"/v1/jobs/{job}/stream", "/v1/stream"):
                async with AsyncExitStack() as watching:
                    watchers = [Watcher(client, path) for _ in range(20)]
                    await asyncio.gather(*(watching.enter_async_context(watcher) for watcher in watchers))
                    assert {watcher.status for watcher in watchers} == {200}
                    await asyncio.gather(*(shown(watcher) for watcher in watchers))
    assert 1 <= most <= 4  # two of the tenant, and the two that are read for all together


async def test_cancel_on_disconnect(database: str, tmp_path: Path, connect: Connect) -> None:
    """Nobody waits any more: the statement ends at once, not at its deadline."""
    connection, watching = await connect(), await connect()
    waiting = """select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%submit_job%'"""

    async def until(count: int) -> None:
        async def reached() -> bool:
            return bool(await watching.fetchval(waiting) == count)

        await eventually(reached, f"{count} statements that wait")

    with running(database, tmp_path, "--lock-seconds", "600", "--statement-seconds", "600") as victim:
        async with client_of(victim, database) as client, open_transaction(connection, "attacker"):
            asking = [asyncio.create_task(enqueue_held(client)) for _ in range(3)]
            await until(3)
            for task in asking:
                task.cancel()
            await until(0)
            await asyncio.gather(*asking, return_exceptions=True)
        async with client_of(victim, database) as client:
            assert (await enqueue_held(client)).status_code == 202
    assert "Exception" not in (tmp_path / "server.log").read_text()


async def test_recursive_paths_in_trigger_maps(database: str, tmp_path: Path, connect: Connect) -> None:
    connection = await connect()
    with running(database, tmp_path) as victim:
        async with client_of(victim, database) as client:

            async def create(path: str) -> httpx.Response:
                body: dict[str, Any] = {"name": "push", "kind": "build", "secret": SECRET, "map": {"x": path}}
                return await client.post("/v1/triggers", json=body)

            for path in ("$.**.**.**.**.**.zzz", "$.a.**{2}.b", 'strict $."x".** ? (@ > 1)', "$.a ? (exists (@.**.b))"):
                refused = await create(path)
                assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), path
                assert "every depth" in refused.json()["detail"]
            # Names may have stars, and strings.
            assert (await create('$."a**b\\"**".*.* ? (@ like_regex "**")')).status_code in (201, 422)
            assert (await create('$."a**b".x ? (@ != "**")')).status_code in (201, 409)
            # Made before they were refused.
            await connection.execute("""update fenceline.trigger set map = '{"x": "$.**.**.**.zzz"}'""")
            refused = await fire(client, b"{}", int(time.time()))
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
            assert "make it anew" in refused.json()["detail"]
