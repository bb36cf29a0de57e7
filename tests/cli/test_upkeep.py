"""`fenceline prune`, `sweep` and `retention`, the real programs."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import psycopg

FENCELINE = Path(sysconfig.get_path("scripts")) / "fenceline"


def run(dsn: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
    environment["FENCELINE_DSN"] = dsn
    return subprocess.run([FENCELINE, *words], env=environment, capture_output=True, text=True, check=False)


def answer(dsn: str, *words: str) -> Any:
    done = run(dsn, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_prune_forgets_what_is_over_in_steps(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as sql:
        for _ in range(5):
            sql.execute("select fenceline.cancel_job(job_id) from fenceline.enqueue('work')")
        assert answer(database, "prune") == {"pruned": 0}
        sql.execute("update fenceline.history set ended_at = now() - interval '8 days'")
        sql.execute("select fenceline.cancel_job(job_id) from fenceline.enqueue('work')")
        assert answer(database, "prune", "--limit", "2") == {"pruned": 5}
        assert sql.execute("select count(*) from fenceline.jobs").fetchone() == (1,)
    assert run(database, "prune").stdout == "0 jobs forgotten\n"


def test_sweep_takes_back_what_lost_workers_held(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as sql:
        sql.execute("select fenceline.enqueue('work')")
        sql.execute("select fenceline.claim_jobs(fenceline.register_worker('w', 60), 'default', 1)")
        assert answer(database, "sweep") == {"swept": 0}
        sql.execute("update fenceline.worker set lease_until = now() - interval '1 second'")
        assert run(database, "sweep").stdout == "1 attempts taken back\n"
        assert sql.execute("select status from fenceline.jobs").fetchone() == ("queued",)


def test_retention_is_shown_and_set(database: str) -> None:
    week = {"kind": None, "status": None, "seconds": 604800.0, "said_by": "default"}
    assert answer(database, "retention") == {"items": [week]}
    assert run(database, "retention", "--days", "30", "--kind", "ingest", "--status", "failed").returncode == 0
    items = answer(database, "retention")["items"]
    assert {"kind": "ingest", "status": "failed", "seconds": 2592000.0, "said_by": "operator"} in items
    assert run(database, "retention", "--kind", "ingest", "--reset").returncode == 0
    assert answer(database, "retention", "--days", "1") == {"items": [week | {"seconds": 86400.0}]}


def test_half_a_command_is_a_usage_error(database: str) -> None:
    for words in (["--kind", "ingest"], ["--days", "1", "--reset"], ["--days", "-1"]):
        assert run(database, "retention", *words).returncode == 2, words
    refused = run(database, "retention", "--days", "1", "--status", "failed")
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: the default retention is one number of seconds")
