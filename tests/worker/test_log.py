"""What a worker says in its log: at its start and stop, of connections, of attempts that fail or crash."""

import contextlib
import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Connect
from tests.worker.fleet import Fleet, until
from tests.worker.in_process_worker import ended, running

from fenceline import Fenceline, Retry
from fenceline.credentials import StaticCredentials
from fenceline.runtime.outage import Outage

SOON = Retry(max_attempts=2, backoff="fixed", base=0.1)


@pytest.fixture
def program(fleet: Fleet) -> Fleet:
    shutil.copy(Path(__file__).with_name("log_app.py"), fleet.folder / "log_app.py")
    fleet.app = "log_app:app"
    return fleet


class Records(logging.Handler):
    """A handler as Sentry has one: it sees every record, with its exception."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record)

    def of(self, event: str) -> list[logging.LogRecord]:
        return [record for record in self.seen if getattr(record, "fields", {}).get("event") == event]


@pytest.fixture
def records() -> Iterator[Records]:
    handler, log = Records(), logging.getLogger("fenceline")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)


def events(output: str) -> list[dict[str, Any]]:
    found = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return [line for line in found if "event" in line]


async def test_the_lines_of_a_worker_program_in_text(program: Fleet) -> None:
    worker = await program.started("--lanes", "default,interactive", "--concurrency", "7")
    job = (await program.enqueue("fail", args={"word": "shelf"}))[0]
    await program.enqueue("talk")
    await program.ended(2)
    worker.process.terminate()
    await worker.exit_code()
    output = worker.output()
    started = next(line for line in output.splitlines() if "started:" in line)
    for said in ("app log_app:app", "database postgresql://", "lanes default, interactive", "kinds abort, fail, "):
        assert said in started
    assert "processes 1, concurrency 7" in started
    public = await program.scalar("select fenceline.public_id($1)", job)
    first, last = f"job {public} (fail) failed, attempt 1 of 2", f"job {public} (fail) failed for good, attempt 2 of 2"
    line = next(line for line in output.splitlines() if first in line)
    assert "WARNING" in line
    assert "ValueError: no shelf; retry in 0." in line
    line = next(line for line in output.splitlines() if last in line)
    assert "ERROR" in line
    assert line.endswith("ValueError: no shelf")
    assert output.count("Traceback (most recent call last)") == 1, "at the last attempt only"
    assert output.count('log_app.py", line') == 1
    assert "/fenceline/engine/" not in output, "the traceback begins at the handler"
    assert "stopped: app log_app:app" in output.splitlines()[-1]
    assert "succeeded" not in output
    assert "half way" not in output


async def test_the_same_as_json_with_everything_that_can_be_asked_for(program: Fleet) -> None:
    worker = await program.started("--log-format", "json", "--log-level", "debug", "--log-jobs")
    for kind in ("fail", "fail_blocking", "fail_isolated"):
        await program.enqueue(kind, args={"word": "shelf"})
    for kind in ("talk", "talk_isolated"):
        await program.enqueue(kind)
    await program.ended(5)
    worker.process.terminate()
    await worker.exit_code()
    said = events(worker.output())
    by_event = {name: [line for line in said if line["event"] == name] for name in {line["event"] for line in said}}
    started = by_event["started"][0]
    assert started["app"] == "log_app:app"
    assert (started["lanes"], started["processes"], started["concurrency"]) == (None, 1, 100)
    assert "fail_isolated" in started["kinds"]
    assert sorted(line["kind"] for line in by_event["failed"]) == ["fail", "fail_blocking", "fail_isolated"]
    for line in [*by_event["failed"], *by_event["failed_for_good"]]:
        assert (line["error_type"], line["error"], line["max_attempts"]) == ("ValueError", "no shelf", 2)
        assert line["attempt"] == (1 if line["event"] == "failed" else 2)
        assert (line["retry_in_seconds"] is not None) == (line["event"] == "failed")
        assert "log_app.py" in line["exception"], "debug: at every attempt"
    assert len(by_event["failed_for_good"]) == 3
    assert sorted(line["kind"] for line in by_event["succeeded"]) == ["talk", "talk_isolated"]
    lines = {line["kind"]: (line["shelf"], line["level"]) for line in by_event["log"]}
    assert lines == {"talk": (3, "info"), "talk_isolated": (3, "warning")}
    assert by_event["stopped"][0]["app"] == "log_app:app"


async def test_crashes_and_quarantine(program: Fleet) -> None:
    worker = await program.started("--log-format", "json")
    own = (await program.enqueue("abort"))[0]
    shared = (await program.enqueue("kill"))[0]
    await program.ended(2)
    worker.process.terminate()
    await worker.exit_code()
    said = events(worker.output())
    own_id, shared_id = [await program.scalar("select fenceline.public_id($1)", job) for job in (own, shared)]
    crashed = [line for line in said if line["event"] == "crashed" and line["job"] == own_id]
    assert [line["error"] for line in crashed] == ["the job's process was killed by SIGABRT"] * 2
    assert [line["job"] for line in said if line["event"] == "quarantined"].count(own_id) == 1
    assert [line["job"] for line in said if line["event"] == "quarantined"].count(shared_id) == 1
    died = [line for line in said if line["event"] == "worker_crashed"]
    assert died[0]["exit_code"] == -6
    assert shared_id in next(line for line in said if line["event"] == "jobs_given_back")["suspects"]


async def test_a_worker_inside_a_program_hands_its_failures_to_logging(database: str, records: Records) -> None:
    app = Fenceline(database)

    @app.job(retry=SOON)
    async def fail() -> None:
        raise LookupError("no shelf")

    @app.job
    async def work() -> None: ...

    async with running(app):
        job = await app.enqueue("fail")
        await ended(job)
        await ended(await app.enqueue("work"))

        async def told() -> bool:
            return bool(records.of("failed_for_good"))

        await until(told, "the failure is told")
    assert [record.levelname for record in records.of("failed")] == ["WARNING"]
    for record in [*records.of("failed"), *records.of("failed_for_good")]:
        assert record.exc_info is not None
        kind, error, traceback = record.exc_info
        assert (kind, str(error)) == (LookupError, "no shelf")
        assert traceback is not None
        assert traceback.tb_frame.f_code.co_name == "fail", "from the handler's code on"
        assert record.fields["job"] == job.id  # type: ignore[attr-defined]  # a LogRecord has extra attributes
    assert not records.of("succeeded")
    started, stopped = records.of("started"), records.of("stopped")
    assert "kinds fail, work" in started[0].getMessage()
    assert len(started) == len(stopped) == 1


async def test_an_exception_that_may_show_credentials_is_not_handed_on(database: str, records: Records) -> None:
    app = Fenceline(database, credentials=StaticCredentials({"deployer": {"token": "s3cr3t-t0k3n"}}))

    @app.job(retry=Retry(max_attempts=1))
    async def fail(ctx: Any) -> None:
        token = ctx.credentials["token"]
        raise LookupError(f"refused: {token}")

    async with running(app):
        await ended(await app.enqueue("fail", identity="deployer"))

        async def told() -> bool:
            return bool(records.of("failed_for_good"))

        await until(told, "the failure is told")
    record = records.of("failed_for_good")[0]
    assert record.exc_info is not None
    assert "LookupError: refused: [redacted]" in str(record.exc_info[1])
    assert record.exc_info[2] is None, "there are no frames to look into"
    assert "s3cr3t" not in record.getMessage() + str(record.__dict__)


async def test_a_lost_connection_and_its_return_are_told_once_each(
    database: str, connect: Connect, records: Records
) -> None:
    app = Fenceline(database)

    @app.job
    async def work() -> None: ...

    async with running(app):
        await ended(await app.enqueue("work"))
        await (await connect()).execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
        async with Fenceline(database) as producer:  # whose connection is none of those
            await ended(await producer.enqueue("work"))

        async def told() -> bool:
            return bool(records.of("connection_regained"))

        await until(told, "the return is told")
    assert records.of("connection_lost")[0].getMessage().startswith("connection lost: the database does not answer (")
    assert "answers again after" in records.of("connection_regained")[0].getMessage()


def test_an_outage_is_told_once_however_often_is_tried(records: Records) -> None:
    outage = Outage("database", logging.getLogger("fenceline.worker"))
    outage.end()
    for _ in range(3):
        outage.begin("refused")
    outage.end()
    outage.end()
    outage.begin("again")
    assert [record.fields["event"] for record in records.seen] == [  # type: ignore[attr-defined]  # a LogRecord has extra attributes
        "connection_lost",
        "connection_regained",
        "connection_lost",
    ]
