"""The real program, run as a process, and jobs for it to look at."""

import json
import os
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from tests.support.patience import eventually_blocking, seconds_left

from fenceline.model.public_id import format_id, parse_id

FENCELINE = str(Path(sysconfig.get_path("scripts")) / "fenceline")


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line that says what is wrong; the program did nothing else."""
        assert self.code == 1, self
        assert self.out == "", self
        lines = self.err.splitlines()
        assert len(lines) == 1, self
        assert lines[0].startswith("Error: "), self
        return lines[0].removeprefix("Error: ")


class Program:
    """`fenceline` in a folder of its own, on the test's database unless something else is said."""

    def __init__(self, folder: Path, dsn: str | None) -> None:
        self.folder = folder
        clean = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
        self.environment = clean if dsn is None else {**clean, "FENCELINE_DSN": dsn}

    def __call__(self, *arguments: str, environment: Mapping[str, str] | None = None, given: str = "") -> Ran:
        done = subprocess.run(
            [FENCELINE, *arguments],
            cwd=self.folder,
            env={**self.environment, **(environment or {})},
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds_left(),
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True, slots=True)
class Held:
    """A claimed job."""

    id: str
    job_id: int
    attempt_id: UUID


class Hands:
    """Makes jobs, and does by SQL what a worker would do with them."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection
        self.worker = self.register()

    def register(self) -> int:
        sql = "select fenceline.register_worker('hands', 3600, p_lanes => '{default,interactive}')"
        return int(self.value(sql))

    def value(self, sql: str, *parameters: Any) -> Any:
        row = self.connection.execute(sql, parameters).fetchone()
        return None if row is None else row[0]

    def until(self, sql: str) -> None:
        """Wait until a query says so."""
        eventually_blocking(lambda: self.value(sql), sql)

    def enqueue(self, kind: str = "work", args: Mapping[str, Any] | None = None, **options: Any) -> str:
        given = (kind, json.dumps(args or {}), json.dumps(options))
        return format_id(self.value("select job_id from fenceline.enqueue(%s, %s, %s)", *given))

    def enqueue_many(self, count: int, kind: str = "work", **options: Any) -> list[str]:
        ids = self.value(
            "select job_ids from fenceline.enqueue_many(%s, %s::json[], %s)", kind, ["{}"] * count, json.dumps(options)
        )
        return [format_id(job_id) for job_id in ids]

    def claim(self, lane: str = "default", *, alone: bool = False) -> Held:
        row = self.connection.execute(
            "select job_id, attempt_id from fenceline.claim_jobs(%s, %s, 1, p_alone => %s)", (self.worker, lane, alone)
        ).fetchone()
        assert row is not None
        return Held(format_id(row[0]), row[0], row[1])

    def start(self, held: Held) -> Held:
        self.connection.execute(
            "select fenceline.start_attempts(%s, %s, %s)", ([held.job_id], [held.attempt_id], [0.0])
        )
        return held

    def log(self, held: Held, *lines: Mapping[str, Any]) -> None:
        self.connection.execute(
            "select fenceline.write_log(%s, %s, %s)", (held.job_id, held.attempt_id, json.dumps(lines))
        )

    def progress(self, held: Held, phase: str, **progress: Any) -> None:
        self.connection.execute(
            "select fenceline.set_progress(%s, %s, %s, %s)", (held.job_id, held.attempt_id, phase, json.dumps(progress))
        )

    def finish(self, held: Held, outcome: str = "succeeded", *, result: Any = None, error: Any = None) -> None:
        verdict = self.value(
            "select fenceline.finish_attempt(%s, %s, %s, %s, %s)",
            held.job_id,
            held.attempt_id,
            outcome,
            None if result is None else json.dumps(result),
            None if error is None else json.dumps(error),
        )
        assert verdict == "accepted"

    def finished(self, kind: str = "work", outcome: str = "failed_for_good", **options: Any) -> str:
        """A job that was enqueued, claimed and ended; it must be the next in its lane."""
        job = self.enqueue(kind, **options)
        held = self.claim(options.get("lane", "default"))
        assert held.id == job
        self.finish(held, outcome, error={"code": "error", "message": "it broke"})
        return job

    def worked(self) -> str:
        """A job that has ended, with two steps of three and two phases with items."""
        job = self.enqueue("build", priority=99)
        held = self.start(self.claim())
        assert held.id == job
        me = (held.job_id, held.attempt_id)
        self.value("select fenceline.list_steps_ahead(%s, %s, '{fetch,index,publish}')", *me)
        self.value("select fenceline.record_step(%s, %s, 'fetch', 'h', '{\"pages\": 7}', p_ran_seconds => 1.5)", *me)
        self.value("""select fenceline.record_step(%s, %s, 'index', 'h', p_error => '{"message": "broken"}')""", *me)
        self.progress(held, "load")
        self.value("select fenceline.move_items(%s, %s, 'completed', '{a,b}')", *me)
        self.value("select fenceline.move_items(%s, %s, 'skipped', '{c}', 'closed')", *me)
        self.progress(held, "store", done=1, total=2)
        self.finish(held, "failed_for_good")
        return job

    def status(self, job: str) -> str:
        return str(self.value("select status from fenceline.jobs where job_id = %s", parse_id(job)))

    def statuses(self, jobs: list[str]) -> set[str]:
        return {self.status(job) for job in jobs}
