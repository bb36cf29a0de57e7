"""`identity=`: credentials reach the handler, and nothing else."""

import copy
import json
import pickle
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Connect
from tests.worker.embedded_worker import ended, running
from tests.worker.fleet import Connection, Fleet

from fenceline import Context, Fenceline, Retry
from fenceline.context.secrets import Credentials, Redactor, redact
from fenceline.credentials import StaticCredentials
from fenceline.model.public_id import format_id

#: With everything that JSON, Python and logs spell differently.
SECRET = "s3cr3t-\"quoted\"\\back\nline-ü-'x'-END"  # noqa: S105 - it is to be found nowhere
#: What would give it away even if it were cut or spelled in another way.
PARTS = ("s3cr3t", "-ü-", "x'-END", "-END")


@pytest.fixture
async def fleet(
    database: str, tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Fleet]:
    (tmp_path / "vault.json").write_text(json.dumps({"deployer": {"token": SECRET}, "odd": {"token": SECRET}}))
    monkeypatch.setenv("VAULT", str(tmp_path / "vault.json"))
    fleet = Fleet(database, tmp_path, await connect())
    fleet.app = "identity_app:app"
    shutil.copy(Path(__file__).with_name("identity_app.py"), tmp_path / "identity_app.py")
    yield fleet
    fleet.close()


async def everything(connection: Connection) -> str:
    """All that the database holds, as text."""
    tables = await connection.fetch(
        "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where c.relkind in ('r', 'p') and n.nspname not in ('pg_catalog', 'information_schema')"
    )
    assert len(tables) > 20
    texts = []
    for schema, table in tables:
        rows = await connection.fetch(f'select row_to_json(t)::text from "{schema}"."{table}" t')
        texts.append(f"{table}: " + "\n".join(row[0] for row in rows))
    return "\n".join(texts)


def assert_no_secret(text: str, where: str) -> None:
    for part in PARTS:
        at = text.find(part)
        assert at < 0, f"{where}: …{text[max(0, at - 200) : at + 100]}…"


LEAKS = (
    "leak",
    "leak_blocking",
    "leak_isolated",
    "leak_error",
    "leak_error_isolated",
    "leak_result",
    "leak_transaction",
)


@pytest.mark.parametrize("log_format", ["text", "json"])
async def test_a_secret_is_nowhere(fleet: Fleet, log_format: str) -> None:
    worker = await fleet.started("--log-format", log_format)
    jobs = {kind: (await fleet.enqueue(kind, identity="deployer"))[0] for kind in LEAKS}
    await fleet.ended(len(LEAKS) + 1)  # and the child of the first
    outcomes = {row["job_id"]: row["outcome"] for row in await fleet.history()}
    assert [outcomes[job] for job in jobs.values()] == [
        "succeeded_with_errors",
        "succeeded",
        "succeeded",
        "failed",
        "failed",
        "succeeded",
        "succeeded",
    ], [row["error"] for row in await fleet.history()]
    stored = await everything(fleet.connection)
    assert_no_secret(stored, "database")
    assert stored.count("[redacted]") >= 25
    worker.process.terminate()
    await worker.exit_code()
    assert_no_secret(worker.output(), "output of the worker")
    assert worker.output().count("[redacted]") >= 10
    assert f"{jobs['leak']}" in stored  # it was all of it


async def test_who_has_no_credentials_fails_with_a_code(fleet: Fleet) -> None:
    worker = await fleet.started()
    known, unknown, odd, without = [
        (await fleet.enqueue("need", identity=identity))[0] for identity in ("deployer", "../nobody", "odd", None)
    ]
    await fleet.ended(4)
    rows = {row["job_id"]: row for row in await fleet.history()}
    assert rows[known]["outcome"] == "succeeded"
    errors = {job: json.loads(rows[job]["error"]) for job in (unknown, odd, without)}
    assert [error["code"] for error in errors.values()] == ["credentials", "credentials", "invalid_option"]
    assert errors[unknown]["message"] == "no credentials for identity '../nobody': LookupError"
    assert f"job {format_id(without)} has no identity" in errors[without]["message"]
    assert_no_secret(await everything(fleet.connection), "database")
    assert_no_secret(worker.output(), "output of the worker")


async def test_each_attempt_gets_fresh_ones(database: str) -> None:
    asked: list[tuple[str, str, str]] = []

    class Counting:
        async def credentials(self, identity: str, *, tenant: str, kind: str) -> dict[str, Any]:
            asked.append((identity, tenant, kind))
            if len(asked) == 1:
                raise ConnectionError("the store is away")
            return {"token": f"token-{len(asked)}"}

    app = Fenceline(database, credentials=Counting())
    seen = []

    @app.job(retry=Retry(max_attempts=3, base=0))
    async def work(*, ctx: Context) -> None:
        seen.append((ctx.credentials["token"], ctx.credentials.identity, ctx.job.identity))
        if ctx.attempt == 2:
            raise RuntimeError("again")

    async with running(app):
        record = await ended(await work.options(identity="deployer", tenant="acme").enqueue())
    assert record.status == "succeeded"
    assert asked == [("deployer", "acme", "work")] * 3
    assert seen == [("token-2", "deployer", "deployer"), ("token-3", "deployer", "deployer")]


async def test_an_app_without_a_provider_says_so(database: str) -> None:
    app = Fenceline(database)

    @app.job(retry=Retry(max_attempts=1))
    async def work(*, ctx: Context) -> None:
        assert ctx.credentials

    async with running(app):
        record = await ended(await work.options(identity="deployer").enqueue())
    assert record.error is not None
    assert (record.status, record.error["code"]) == ("failed", "invalid_option")
    assert "Fenceline(credentials=…)" in record.error["message"]


def test_credentials_keep_to_themselves() -> None:
    credentials = Credentials("deployer", {"token": SECRET, "port": 5432})
    assert credentials["token"] == SECRET
    assert dict(credentials) == {"token": SECRET, "port": 5432}
    for shown in (repr(credentials), str(credentials), f"{credentials}", f"{[credentials]}"):
        assert_no_secret(shown, "repr")
        assert "token=[redacted]" in shown
    for write in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps):
        with pytest.raises(TypeError):
            write(credentials)


def test_every_spelling_is_redacted() -> None:
    quoted = Redactor(Credentials("other", {"only-one-quote": "it's s3cr3t-END"}))
    for spelled in (repr("it's s3cr3t-END"), repr('say "it\'s s3cr3t-END"'), json.dumps(repr("\"it's s3cr3t-END"))):
        assert_no_secret(quoted.in_text(spelled), spelled)
    redactor = Redactor(Credentials("deployer", {"a": {"b": [SECRET, b"by\x00tes-s3cr3t"]}, "short": "ab", "n": 7}))
    for spelled in (
        SECRET,
        repr(SECRET),
        repr({"a": SECRET}),
        json.dumps(SECRET),
        json.dumps({"x": SECRET}, ensure_ascii=False),
        json.dumps(json.dumps([SECRET])),
        json.dumps(f"with {[SECRET]}"),
        json.dumps({"x": repr({"y": SECRET})}, ensure_ascii=False),
        str(b"by\x00tes-s3cr3t"),
    ):
        assert_no_secret(redactor.in_text(spelled), spelled)
        assert_no_secret(redact(spelled), spelled)
    assert redactor.in_text("ab 7") == "ab 7"
    fields = redactor.in_fields({SECRET: 1, "deep": {SECRET: [SECRET, {"x": (SECRET,)}]}, "none": None, "n": 1.5})
    assert_no_secret(str(fields), "fields")
    assert (fields["none"], fields["n"]) == (None, 1.5)
    assert redactor.in_values({"namespace": SECRET}) == {"namespace": "[redacted]"}
    del redactor
    assert redact(SECRET) == SECRET, "forgotten with the job that had it"


async def test_static_credentials_in_an_embedded_worker(database: str) -> None:
    app = Fenceline(database, credentials=StaticCredentials({"deployer": {"token": "abcdefgh"}}))

    @app.job()
    async def work(*, ctx: Context) -> str:
        return f"<{ctx.credentials['token']}>"

    @app.job()
    async def plain(*, ctx: Context) -> str:
        return "abcdefgh"

    async with running(app):
        job = await work.options(identity="deployer").enqueue()
        assert await job.result(30) == "<[redacted]>"
        assert await (await plain.enqueue()).result(30) == "abcdefgh", "it has no identity, so it knows no secret"
