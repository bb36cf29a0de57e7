"""With a codec nothing that a job carries stands readable in the database, and everything works as without."""

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet, MultiFernet
from tests.support.patience import eventually, seconds_left
from tests.worker.in_process_worker import ended, running

from fenceline import Context, Fail, Fenceline, Retry, Sealed, SyncContext, WithErrors
from fenceline.client.app_parts import app_parts
from fenceline.client.codec import InvalidKeys, codec_from_environment
from fenceline.client.handler_parts import handler_parts
from fenceline.database import calls
from fenceline.database.call import Call
from fenceline.database.decoding import nothing
from fenceline.database.embedded_cluster import find_binaries
from fenceline.errors import InvalidOption
from fenceline.model.public_id import parse_id

CANARY = "canary-3f9a1c"
KEY = Fernet.generate_key()
NEWER_KEY = Fernet.generate_key()


def make_app(dsn: str, codec: Any = None) -> Fenceline:
    app = Fenceline(dsn, codec=codec)

    @app.job(retry=Retry(max_attempts=2, backoff="fixed", base=0.0, jitter=0.0))
    async def carry(ctx: Context, secret: str) -> WithErrors[dict[str, str]]:
        ctx.log(f"has {secret}", of=secret)
        kept = await ctx.step("keep", lambda: secret)
        if ctx.attempt == 1:
            await ctx.checkpoint({"state": secret})
            raise ValueError(f"not {kept}")
        assert ctx.resume == {"state": secret}
        await ctx.enqueue("child", {"secret": secret})
        return WithErrors({"result": secret}, [f"error {secret}"])

    @app.job()
    def child(ctx: SyncContext, secret: str) -> str:
        return secret

    @app.job(kind="fail", retry=Retry(max_attempts=1))
    async def fail(secret: str) -> None:
        raise Fail(f"never {secret}")

    @app.job(kind="in_transaction")
    async def in_transaction(ctx: Context, secret: str) -> dict[str, str]:  # type: ignore[return]  # it ends in the block
        async with ctx.transaction() as connection:
            connection.result = {"written": secret}

    return app


def dump(dsn: str) -> str:
    done = subprocess.run(
        [find_binaries() / "pg_dump", "--data-only", "--schema=fenceline", dsn],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
async def app(database: str) -> AsyncIterator[Fenceline]:
    async with make_app(database, MultiFernet([Fernet(KEY)])) as app:
        yield app


async def work_through(app: Fenceline) -> None:
    """Everything that a job can carry, written by a worker and read back by the client."""
    async with running(app, isolated=1):
        carried = await app.enqueue("carry", {"secret": CANARY})
        many = await app_parts(app).handlers["child"].enqueue_many([{"secret": CANARY}, {"secret": CANARY}])
        async with app.group() as group:
            grouped = await group.enqueue("child", {"secret": CANARY})
        failed = await app.enqueue("fail", {"secret": CANARY})
        written = await app.enqueue("in_transaction", {"secret": CANARY})
        record = await ended(carried)
        assert record.args == {"secret": CANARY}
        assert record.result == {"result": CANARY}
        assert record.errors == [f"error {CANARY}"]
        assert {line.message for line in await carried.logs()} >= {f"has {CANARY}"}
        assert (await carried.logs())[0].fields == {"of": CANARY}
        [step] = await carried.steps()
        assert step.result == CANARY
        first = next(attempt for attempt in await carried.attempts() if attempt.error is not None)
        assert first.error is not None
        assert first.error["message"] == f"not {CANARY}"
        assert (await written.result(seconds_left())) == {"written": CANARY}
        assert [await job.result(seconds_left()) for job in (*many, grouped)] == [CANARY] * 3
        failure = (await ended(failed)).error
        assert failure is not None
        assert (failure["message"], failure["type"]) == (f"never {CANARY}", "Fail")
        page = await app.jobs.list(kind="child")
        await asyncio.gather(*(app.jobs.handle(job.id).wait(seconds_left()) for job in page.items))
    assert {job.args["secret"] for job in page.items} == {CANARY}
    assert len(page.items) == 4, "the child is there"


async def test_nothing_is_readable_in_a_dump(app: Fenceline, database: str) -> None:
    await work_through(app)
    text = dump(database)
    assert "$sealed" in text
    assert CANARY not in text


async def test_without_a_codec_it_is_readable(database: str) -> None:
    """So that the test above can fail."""
    async with make_app(database) as app:
        await work_through(app)
    assert dump(database).count(CANARY) > 10


async def test_an_enqueue_in_a_transaction_of_the_users_is_sealed(app: Fenceline, connect: Any, database: str) -> None:
    connection = await connect()
    async with connection.transaction():
        job = await app.enqueue("child", {"secret": CANARY}, connection=connection)
    assert (await job.get()).args == {"secret": CANARY}
    assert CANARY not in dump(database)


def test_blocking_code_seals_too(database: str) -> None:
    app = make_app(database, Fernet(KEY))
    job = app.sync.enqueue("child", {"secret": CANARY})
    assert job.get().args == {"secret": CANARY}
    app.sync.close()
    assert CANARY not in dump(database)


async def test_values_from_before_the_codec_are_read(app: Fenceline, database: str) -> None:
    async with make_app(database) as plain:
        job = await plain.enqueue("child", {"secret": "plain"})
    async with running(app):
        assert await app.jobs.handle(job.id).result(seconds_left()) == "plain"


async def test_a_worker_without_the_key_leaves_the_job_to_others(app: Fenceline, database: str) -> None:
    job = await app.enqueue("child", {"secret": CANARY}, max_attempts=1)
    async with make_app(database) as blind, running(blind):
        seen = blind.jobs.handle(job.id)

        async def put_off() -> bool:
            return (await seen.get()).status == "scheduled"

        await eventually(put_off, "the job is put off")
        record = await seen.get()
        assert record.attempt == 0, "it costs no attempt"
        assert "$sealed" in record.args
    connection_app = make_app(database, Fernet(KEY))
    async with connection_app, running(connection_app):
        await app_parts(connection_app).database().call(_now(job.id))
        assert await connection_app.jobs.handle(job.id).result(seconds_left()) == CANARY


def _now(job_id: str) -> Any:
    """The job's timer is due."""
    return Call("update fenceline.timer set run_at = fenceline.clock() where job_id = $1", (parse_id(job_id),), nothing)


async def test_a_result_that_cannot_be_read_is_refused(app: Fenceline, database: str) -> None:
    async with running(app):
        job = await app.enqueue("child", {"secret": CANARY})
        await job.wait(seconds_left())
    async with make_app(database, Fernet(NEWER_KEY)) as other:
        handler = app_parts(other).handlers["child"]
        with pytest.raises(Sealed, match="FENCELINE_KEYS"):
            handler_parts(handler).arguments.decode_result((await other.jobs.get(job.id)).result)


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FENCELINE_KEYS", raising=False)
    assert codec_from_environment() is None
    monkeypatch.setenv("FENCELINE_KEYS", f"{NEWER_KEY.decode()}, {KEY.decode()}")
    codec = codec_from_environment()
    assert codec is not None
    assert codec.decrypt(Fernet(KEY).encrypt(b"x")) == b"x"
    assert Fernet(NEWER_KEY).decrypt(codec.encrypt(b"x")) == b"x", "the first one encrypts"


def test_a_wrong_key_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCELINE_KEYS", "hunter2")
    with pytest.raises(InvalidKeys) as caught:
        Fenceline("postgresql://nowhere")
    assert "hunter2" not in str(caught.value)
    assert "32 bytes" in str(caught.value)


async def test_everything_is_encrypted_anew(app: Fenceline, database: str) -> None:
    await work_through(app)
    old_tokens = set(re.findall(r"gAAAA[A-Za-z0-9_=-]+", dump(database)))
    both = MultiFernet([Fernet(NEWER_KEY), Fernet(KEY)])
    async with make_app(database, both) as rolling:
        rekey_id = await rolling.system.rekey(actor="op")
        assert await rolling.system.rekey(actor="op") == rekey_id, "one is enough"
        async with running(rolling):
            counts = await rolling.jobs.handle(rekey_id).result(seconds_left())
    assert counts["unreadable"] == 0
    assert counts["jobs"] == 8, "those of work_through, and itself"
    tokens = set(re.findall(r"gAAAA[A-Za-z0-9_=-]+", dump(database)))
    assert not tokens & old_tokens
    assert len(tokens) >= len(old_tokens) > 20
    async with make_app(database, Fernet(NEWER_KEY)) as after:
        page = await after.jobs.list(kind="carry")
        [record] = page.items
        assert record.args == {"secret": CANARY}
        assert record.result == {"result": CANARY}
        assert (await after.jobs.handle(record.id).logs())[0].message == f"has {CANARY}"
        [step] = await after.jobs.handle(record.id).steps()
        assert step.result == CANARY
    assert CANARY not in dump(database)


async def test_what_cannot_be_opened_is_counted_and_left(app: Fenceline, database: str) -> None:
    job = await app.enqueue("child", {"secret": CANARY}, run_at=datetime.now(UTC) + timedelta(days=1))
    async with make_app(database, Fernet(NEWER_KEY)) as other:
        rekey_id = await other.system.rekey()
        async with running(other):
            counts = await other.jobs.handle(rekey_id).result(seconds_left())
    assert (counts["unreadable"], counts["changed"]) == (1, 0)
    assert (await job.get()).args == {"secret": CANARY}


async def test_only_the_encryption_can_be_replaced(app: Fenceline) -> None:
    job = await app.enqueue("child", {"secret": CANARY})
    database = app_parts(app).database()
    [found] = await database.call(calls.rekey.sealed_values(0, 10))
    assert found.value is not None
    change = {"job_id": parse_id(job.id), "source": "job", "place": None, "old": json.loads(found.value)}
    with pytest.raises(InvalidOption, match="beyond its encryption"):
        await database.call(calls.rekey.replace_sealed([{**change, "new": {"args": {"secret": "forged"}}}]))
    other = {"args": {"$sealed": Fernet(KEY).encrypt(b'{"secret": "new"}').decode()}}
    stale = {**change, "old": other, "new": json.loads(found.value)}
    assert await database.call(calls.rekey.replace_sealed([stale])) == 0, "it is not the old one any more"
    assert await database.call(calls.rekey.replace_sealed([{**change, "new": other}])) == 1
    assert (await job.get()).args == {"secret": "new"}
