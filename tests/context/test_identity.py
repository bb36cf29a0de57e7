"""`identity=`: credentials reach the handler, and nothing else."""

import asyncio
import base64
import copy
import json
import logging
import pickle
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest
from tests.conftest import Connect
from tests.context.identity_app import forms
from tests.support.patience import seconds_left
from tests.worker.fleet import Connection, Fleet
from tests.worker.in_process_worker import ended, running

from fenceline import Context, Fenceline, Retry
from fenceline.context.redaction import Credentials, Redactor, has_secrets, open_end, redact
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


def decoded(text: str) -> Iterator[str]:
    """What can be read out of a text: as it is, and as base64, hex and percent codes decode it, from any place on."""
    yield text
    yield unquote_plus(text)
    yield unquote_plus(text.replace("[redacted]", ""))
    for run in re.findall(r"[A-Za-z0-9+/_-]{8,}", text):
        for start in range(4):
            part = run[start:].translate(str.maketrans("-_", "+/"))
            yield base64.b64decode(part[: len(part) // 4 * 4]).decode(errors="replace")
    for run in re.findall(r"[0-9a-fA-F]{12,}", text):
        yield bytes.fromhex(run[: len(run) // 2 * 2]).decode(errors="replace")


def assert_nothing_readable(text: str, where: str) -> None:
    for reading in decoded(text):
        assert_no_secret(reading, where)


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


async def test_no_form_of_a_secret_is_printed_or_logged(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    library_log = fleet.folder / "library.log"
    monkeypatch.setenv("LIBRARY_LOG", str(library_log))
    worker = await fleet.started()
    for kind in ("leak_encoded", "leak_encoded", "leak_encoded_blocking", "leak_encoded_isolated"):
        await fleet.enqueue(kind, identity="deployer")
    await fleet.ended(4)
    worker.process.terminate()
    await worker.exit_code()
    assert {row["outcome"] for row in await fleet.history()} == {"succeeded"}
    assert_nothing_readable(worker.output(), "output of the worker")
    assert_nothing_readable(library_log.read_text(), "a log file")
    assert_nothing_readable(await everything(fleet.connection), "database")
    assert worker.output().count("[redacted]") >= 4 * 40 * 4
    assert "cannot log in\nTraceback" in library_log.read_text()


async def test_a_worker_inside_a_program_prints_no_secret(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    app = Fenceline(database, credentials=StaticCredentials({"deployer": {"token": SECRET}}))
    early = sys.stderr

    @app.job()
    async def work(ctx: Context) -> None:
        for form in forms(ctx.credentials["token"]):
            print(form)  # noqa: T201 - as handlers do
            early.write(form[:7])
            early.write(form[7:] + "\n")

    async with running(app):
        await (await work.options(identity="deployer").enqueue()).result(seconds_left())
    captured = "".join(capsys.readouterr())
    assert_nothing_readable(captured, "output of the program")
    assert captured.count("[redacted]") >= 2 * 40


async def test_what_a_library_tells_of_the_exchange_is_not_kept(
    database: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """As boto does at debug level: it quotes the answer, before anybody knows what is secret in it."""
    library = logging.getLogger("cloud_library")

    class Talkative:
        async def credentials(self, identity: str, **_: str) -> dict[str, str]:
            library.info("asking for %s", identity)
            await asyncio.to_thread(library.debug, "the answer: %s", {"token": SECRET})
            return {"token": SECRET}

    app = Fenceline(database, credentials=Talkative())

    @app.job()
    async def work(ctx: Context) -> None:
        library.debug("working with %s", ctx.credentials["token"])

    with caplog.at_level(logging.DEBUG, logger=library.name):
        async with running(app):
            await (await work.options(identity="deployer").enqueue()).result(seconds_left())
    assert_no_secret(caplog.text, "log of the process")
    assert "asking for deployer" in caplog.text
    kept = await everything(await connect())
    assert_no_secret(kept, "database")
    assert "working with [redacted]" in kept
    assert "asking for deployer" not in kept  # the handler has not begun


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
    async def work(ctx: Context) -> None:
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
    async def work(ctx: Context) -> None:
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


def test_the_end_of_a_text_may_be_the_beginning_of_a_secret() -> None:
    redactor = Redactor(Credentials("deployer", {"token": "abcabd-rest"}))
    texts = ["", "x", "xa", "xab", "xabc", "xabcab", "xabcabcab", "abcabd-res", "abcabd-rest", "abcabd-rest\n", "xabx"]
    assert [redactor.open_end(text) for text in texts] == [0, 0, 1, 2, 3, 5, 5, 10, 0, 0, 0]
    assert open_end("xabcab") >= 5
    assert has_secrets()


async def test_static_credentials_in_an_embedded_worker(database: str) -> None:
    app = Fenceline(database, credentials=StaticCredentials({"deployer": {"token": "abcdefgh"}}))

    @app.job()
    async def work(ctx: Context) -> str:
        return f"<{ctx.credentials['token']}>"

    @app.job()
    async def plain(ctx: Context) -> str:
        return "abcdefgh"

    async with running(app):
        job = await work.options(identity="deployer").enqueue()
        assert await job.result(seconds_left()) == "<[redacted]>"
        assert await (await plain.enqueue()).result(seconds_left()) == "abcdefgh", (
            "it has no identity, so it knows no secret"
        )
