"""`fenceline doctor`, the real program, on databases with one planted problem each, and on healthy ones.

The shared server of the tests has fsync switched off: that finding is there in every one of its databases.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.cli.program import FENCELINE, Program, Ran
from tests.deploy.manifests import parse
from tests.sql.clock import clock_sql
from tests.support.patience import eventually_blocking, seconds_left

from fenceline.database.embedded import EmbeddedPostgres
from fenceline.doctor import queue_checks
from fenceline.testing.databases import migrate_database

Session = psycopg.Connection[tuple[Any, ...]]


def run(dsn: str | None, *options: str, folder: Path = Path()) -> Ran:
    return Program(folder, dsn)("doctor", *options)


def findings(dsn: str, *options: str, fsync: bool = False) -> dict[tuple[str, str], dict[str, str]]:
    """What doctor says by (check, subject), without what the test server is known for."""
    done = run(dsn, "--json", *options)
    assert done.code in (0, 1), done.err
    answer = json.loads(done.out)
    assert done.code == (0 if answer["healthy"] else 1)
    for finding in answer["findings"]:
        assert finding["what"]
        assert finding["do"], "every finding says what to do"
    found = {(finding["check"], finding["subject"]): finding for finding in answer["findings"]}
    if not fsync:
        found.pop(("setting", "fsync"), None)
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """For an embedded server: below /tmp, because the path of its socket must stay short."""
    with tempfile.TemporaryDirectory(prefix="fenceline-doctor-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture
def sql(database: str) -> Iterator[Session]:
    with psycopg.connect(database, autocommit=True) as session:
        yield session


def enqueue(sql: Session, kind: str = "work", **options: Any) -> int:
    row = sql.execute("select job_id from fenceline.enqueue(%s, '{}', %s)", (kind, json.dumps(options))).fetchone()
    assert row is not None
    return int(row[0])


def register(sql: Session, **options: Any) -> None:
    names = ", ".join(f"p_{name} => %s" for name in options)
    sql.execute(f"select fenceline.register_worker('w', {names})".encode(), tuple(options.values()))


# Healthy -------------------------------------------------------------------------------------------------------------


def test_it_is_silent_about_a_fresh_embedded_database(folder: Path) -> None:
    done = run(None, folder=folder)
    assert (done.code, done.out) == (0, ""), done.err
    assert done.err == "no problems found\n"


def test_it_is_silent_about_a_queue_at_work(database: str, sql: Session) -> None:
    """Jobs in every state, a worker that knows them: nothing to say, however little patience there is."""
    register(sql, lease_seconds=3600.0, kinds=["work"], version="0.1.0")
    enqueue(sql)
    first = enqueue(sql, resource_lock="table", dedupe_key="d", priority=9)
    sql.execute("select fenceline.claim_jobs((select id from fenceline.worker), 'default', 1)")
    enqueue(sql, needs_approval=True)
    enqueue(sql, after=[first])
    enqueue(sql, key="k")
    enqueue(sql, key="k")
    enqueue(sql, run_at="2099-01-01T00:00:00Z")
    sql.execute("select fenceline.cancel_job(%s)", (enqueue(sql),))
    sql.execute("select fenceline.maintain(), fenceline.upkeep()")
    assert findings(database, "--patience", "0") == {}


# One planted problem each --------------------------------------------------------------------------------------------


def plant_no_schema(sql: Session) -> None:
    sql.execute("drop schema fenceline cascade")


def plant_old_schema(sql: Session) -> None:
    sql.execute("delete from fenceline.migration where number > 1")


def plant_new_schema(sql: Session) -> None:
    sql.execute("insert into fenceline.migration values (9999, '9999_pre_future', 'x', 9999)")


def plant_changed_function(sql: Session) -> None:
    sql.execute(
        "create or replace function fenceline.is_due(p_task text, p_seconds double precision) returns boolean "
        "language sql as 'select true'"
    )


def plant_missing_grant(sql: Session) -> None:
    sql.execute("revoke execute on function fenceline.enqueue from fenceline_producer")


def plant_public_grant(sql: Session) -> None:
    sql.execute("grant select on fenceline.job to public")


def plant_lazy_commits(sql: Session) -> None:
    sql.execute(f'alter database "{sql.info.dbname}" set synchronous_commit = off'.encode())


def plant_read_only(sql: Session) -> None:
    sql.execute(f'alter database "{sql.info.dbname}" set default_transaction_read_only = on'.encode())


def plant_no_vacuum(sql: Session) -> None:
    sql.execute("alter table fenceline.ready set (autovacuum_enabled = off)")


def plant_lane_without_workers(sql: Session) -> None:
    register(sql, lease_seconds=3600.0, lanes=["system"])
    enqueue(sql)


def plant_unknown_kind(sql: Session) -> None:
    register(sql, lease_seconds=3600.0, kinds=["other"])
    enqueue(sql)


def plant_no_slots(sql: Session) -> None:
    register(sql, lease_seconds=3600.0)
    sql.execute("""select fenceline.set_lane('system', '{"slots": 0}')""")
    enqueue(sql, lane="system")


def plant_no_lane(sql: Session) -> None:
    enqueue(sql, lane="system", run_at="2099-01-01T00:00:00Z")
    sql.execute("delete from fenceline.lane where name = 'system'")


def plant_lost_dependency(sql: Session) -> None:
    register(sql, lease_seconds=3600.0)
    first = enqueue(sql, run_at="2099-01-01T00:00:00Z")
    enqueue(sql, after=[first])
    sql.execute("delete from fenceline.timer")
    sql.execute("delete from fenceline.dependency_check")
    sql.execute("delete from fenceline.job where id = %s", (first,))


def plant_job_without_a_place(sql: Session) -> None:
    enqueue(sql)
    sql.execute("delete from fenceline.ready")


def plant_lost_lock(sql: Session) -> None:
    job = enqueue(sql, resource_lock="table")
    sql.execute("select fenceline.cancel_job(%s)", (job,))
    sql.execute("insert into fenceline.resource_lock values ('default', 'table', %s)", (job,))


def plant_lost_key(sql: Session) -> None:
    sql.execute("insert into fenceline.key_holder values ('default', 'acct:7', 1)")


def plant_lost_worker(sql: Session) -> None:
    register(sql, lease_seconds=3600.0)
    enqueue(sql)
    sql.execute("select fenceline.claim_jobs((select id from fenceline.worker), 'default', 1)")
    sql.execute("update fenceline.worker set lease_until = now() - interval '1 minute'")


def plant_overdue_timer(sql: Session) -> None:
    enqueue(sql, run_at="2099-01-01T00:00:00Z")
    sql.execute("update fenceline.timer set run_at = now() - interval '1 minute'")


def plant_overdue_schedule(sql: Session) -> None:
    sql.execute("""select fenceline.set_schedule('nightly', '{"kind": "work", "cron": "0 3 * * *"}')""")
    sql.execute("update fenceline.schedule set due_at = now() - interval '1 minute'")


def plant_no_upkeep(sql: Session) -> None:
    register(sql, lease_seconds=3600.0)
    sql.execute("select fenceline.upkeep()")
    sql.execute("update fenceline.maintenance set ran_at = now() - interval '1 hour' where task = 'upkeep'")


def plant_mixed_versions(sql: Session) -> None:
    for version in ("0.1.0", "0.2.0"):
        register(sql, lease_seconds=3600.0, version=version)


def plant_missing_partition(sql: Session) -> None:
    tomorrow = time.strftime("%Y%m%d", time.gmtime(time.time() + 86400))
    sql.execute(f"drop table fenceline.job_{tomorrow}, fenceline.history_{tomorrow}".encode())


def plant_detached_partition(sql: Session) -> None:
    sql.execute("create table fenceline.job_20240105 (like fenceline.job)")


def plant_overdue_partition(sql: Session) -> None:
    for table in ("job", "history"):
        of = f"partition of fenceline.{table} for values from (1) to (2)"
        sql.execute(f"create table fenceline.{table}_20240105 {of}".encode())


def plant_partitions_not_made_ahead(sql: Session) -> None:
    soon = time.strftime("%Y%m%d", time.gmtime(time.time() + 2 * 86400))
    sql.execute(f"drop table fenceline.job_{soon}, fenceline.history_{soon}".encode())


def plant_retention_behind(sql: Session) -> None:
    register(sql, lease_seconds=3600.0, version="0.1.0")
    sql.execute("select fenceline.cancel_job(%s)", (enqueue(sql),))
    sql.execute("select fenceline.set_retention(0, 'work')")


def plant_drained_lane(sql: Session) -> None:
    enqueue(sql)
    sql.execute("""select fenceline.set_lane('default', '{"enabled": false}')""")


PLANTED: list[tuple[Callable[[Session], None], str, str]] = [
    (plant_no_schema, "schema", "fenceline"),
    (plant_old_schema, "schema", "fenceline"),
    (plant_new_schema, "schema", "fenceline"),
    (plant_changed_function, "functions", "is_due"),
    (plant_missing_grant, "grants", "fenceline_producer"),
    (plant_public_grant, "grants", "PUBLIC"),
    (plant_lazy_commits, "setting", "synchronous_commit"),
    (plant_read_only, "setting", "default_transaction_read_only"),
    (plant_no_vacuum, "vacuum", "ready"),
    (plant_lane_without_workers, "lane_without_workers", "default"),
    (plant_unknown_kind, "unknown_kind", "work"),
    (plant_no_slots, "stuck_jobs", "*"),
    (plant_no_lane, "stuck_jobs", "*"),
    (plant_lost_dependency, "stuck_jobs", "*"),
    (plant_job_without_a_place, "stuck_jobs", "*"),
    (plant_lost_lock, "lost_lock", "resource_lock table"),
    (plant_lost_key, "lost_lock", "key acct:7"),
    (plant_lost_worker, "lost_worker", "w"),
    (plant_overdue_timer, "overdue", "timers"),
    (plant_overdue_schedule, "overdue", "schedules"),
    (plant_no_upkeep, "upkeep", "upkeep"),
    (plant_mixed_versions, "mixed_versions", "workers"),
    (plant_missing_partition, "partitions", "*"),
    (plant_partitions_not_made_ahead, "partitions", "*"),
    (plant_retention_behind, "retention", "finished jobs"),
    (plant_detached_partition, "partitions", "job_20240105"),
    (plant_overdue_partition, "partitions", "job_20240105"),
]


@pytest.mark.parametrize("plant, check, subject", PLANTED, ids=[plant.__name__[6:] for plant, _, _ in PLANTED])
def test_a_planted_problem_is_found_and_nothing_else(
    database: str, sql: Session, plant: Callable[[Session], None], check: str, subject: str
) -> None:
    plant(sql)
    found = findings(database, "--patience", "0")
    assert {(name, "*" if subject == "*" else about) for name, about in found} == {(check, subject)}
    assert {finding["level"] for finding in found.values()} == {"problem"}


def test_messages_that_nobody_answers_are_found(database: str, sql: Session) -> None:
    """As with workers that lack the address of Redis, or a Redis that is away."""
    register(sql, lease_seconds=3600.0)
    sql.execute("""select fenceline.set_lane('mail', '{"delivery": "arq"}')""")
    assert ("delivery", "mail") not in findings(database, "--patience", "0"), "nothing waits there"
    enqueue(sql, lane="mail")
    enqueue(sql)
    found = findings(database, "--patience", "0")
    assert {subject for check, subject in found if check == "delivery"} == {"mail"}
    assert "FENCELINE_REDIS_URL" in found["delivery", "mail"]["do"]
    sql.execute("select fenceline.claim_named_jobs(1, 'mail', array(select job_id from fenceline.ready))")
    enqueue(sql, lane="mail")
    assert ("delivery", "mail") not in findings(database, "--patience", "0"), "the lane is at work"


def test_a_drained_lane_is_worth_a_notice(database: str, sql: Session) -> None:
    plant_drained_lane(sql)
    [(name, finding)] = findings(database, "--patience", "0").items()
    assert (name, finding["level"]) == (("drained", "default"), "notice")


def test_another_default_isolation_is_worth_a_notice(database: str, sql: Session) -> None:
    sql.execute(f"alter database \"{sql.info.dbname}\" set default_transaction_isolation = 'serializable'".encode())
    [(name, finding)] = findings(database).items()
    assert (name, finding["level"]) == (("isolation", f"database {sql.info.dbname}"), "notice")
    assert "SERIALIZABLE" in finding["what"]


def test_a_clock_that_is_apart_is_found(database: str, sql: Session) -> None:
    sql.execute(clock_sql().encode())
    finding = findings(database)["clock_skew", "clock"]
    assert "ahead of this machine's" in finding["what"]


def test_dead_rows_are_counted(database: str, sql: Session) -> None:
    sql.execute("alter table fenceline.ready set (autovacuum_enabled = off)")  # it would come within a minute
    jobs = [enqueue(sql) for _ in range(60)]
    for job in jobs:
        sql.execute("select fenceline.cancel_job(%s)", (job,))
    sql.execute("select pg_stat_force_next_flush()" if sql.info.server_version >= 150000 else "select 1")
    counted = "select n_dead_tup from pg_stat_user_tables where schemaname = 'fenceline' and relname = 'ready'"
    eventually_blocking(lambda: sql.execute(counted.encode()).fetchone() == (60,), "the statistics of the table")
    found = findings(database, "--max-dead-rows", "50")
    assert "60 dead rows, 0 live ones" in found["dead_rows", "ready"]["what"]


def test_a_server_set_up_to_lose_jobs_is_found_out(folder: Path) -> None:
    """Settings of the whole server, and what only a server with other settings can have."""
    with EmbeddedPostgres(folder) as dsn, psycopg.connect(dsn, autocommit=True) as session:
        for setting in ("fsync", "full_page_writes", "autovacuum", "track_counts"):
            session.execute(f"alter system set {setting} = off".encode())
        session.execute("alter system set max_prepared_transactions = 5")
        session.execute("alter system set wal_level = logical")
    with EmbeddedPostgres(folder) as dsn, psycopg.connect(dsn, autocommit=True) as session:
        asyncio.run(migrate_database(dsn))
        session.execute("select pg_create_logical_replication_slot('left_behind', 'pgoutput')")
        session.execute("begin; create table t (); prepare transaction 'it''s forgotten'")
        found = findings(dsn, "--patience", "0", fsync=True)
    assert set(found) == {
        ("setting", "fsync"),
        ("setting", "full_page_writes"),
        ("setting", "autovacuum"),
        ("setting", "track_counts"),
        ("horizon", "prepared transaction it's forgotten"),
        ("horizon", "replication slot left_behind"),
    }
    assert "rollback prepared 'it''s forgotten';" in found["horizon", "prepared transaction it's forgotten"]["do"]


# Sessions ------------------------------------------------------------------------------------------------------------


def test_who_pins_the_vacuum_horizon_is_named(database: str, sql: Session) -> None:
    with psycopg.connect(database, application_name="a long report") as other:
        other.execute("set transaction isolation level repeatable read")
        other.execute("select 'the query of the report'")
        [(name, finding)] = findings(database, "--patience", "0").items()
        assert name == ("horizon", f"pid {other.info.backend_pid}")
        assert "a long report" in finding["what"]
        assert "the query of the report" in finding["what"]
        assert findings(database, "--patience", "3600") == {}


def test_a_session_that_forgot_its_transaction_is_found(database: str, sql: Session) -> None:
    with psycopg.connect(database, application_name="forgetful") as other:
        other.execute("select 1")
        [(name, finding)] = findings(database, "--patience", "0").items()
        assert name == ("idle_in_transaction", f"pid {other.info.backend_pid}")
        assert "forgetful" in finding["what"]


def test_notifications_that_pile_up_are_found(database: str, sql: Session) -> None:
    """A listener that is idle in a transaction keeps every notification in the queue."""
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("listen somewhere")
        other.execute("begin")
        for _ in range(20):
            sql.execute("select pg_notify('somewhere', repeat('x', 7000))")
        found = findings(database, "--max-notifications", "0.0000001")
        assert ("notification_queue", "pg_notification_queue_usage()") in found


def test_a_listener_that_stops_reading_is_found(database: str, sql: Session) -> None:
    with psycopg.connect(database, autocommit=True, application_name="deaf") as other:
        other.execute("listen somewhere")
        # A small buffer, soon full; and then nobody reads.
        with socket.socket(fileno=os.dup(other.fileno())) as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(200):
            sql.execute("select pg_notify('somewhere', repeat('x', 7000) || random())")
        found = findings(database)
        assert "'deaf'" in found["stuck_listener", f"pid {other.info.backend_pid}"]["what"]
        # Its backend waits for it: it would wait for the end of the connection, too.
        sql.execute("select pg_terminate_backend(%s)", (other.info.backend_pid,))


# For people, and for those with few rights ---------------------------------------------------------------------------


def test_text_names_the_problem_and_what_to_do(database: str, sql: Session) -> None:
    plant_mixed_versions(sql)
    done = run(database)
    assert done.code == 1
    assert "✗ problem  mixed_versions  workers" in done.out
    assert "do: finish the rollout, or stop the old ones" in done.out


def test_a_reader_learns_what_it_may_and_is_told_about_the_rest(
    database: str, sql: Session, administrator: psycopg.Connection
) -> None:
    role = f"fenceline_test_{uuid4().hex[:12]}"
    administrator.execute(f"create role {role} login in role fenceline_reader".encode())
    try:
        plant_mixed_versions(sql)
        found = findings(database.replace("postgres@", f"{role}@", 1))
        assert ("mixed_versions", "workers") in found
        assert {name for name, finding in found.items() if finding["level"] == "notice"} == {("visibility", role)}
    finally:
        administrator.execute(f"drop role {role}".encode())


def test_an_unreachable_database_is_one_line() -> None:
    assert "check --dsn" in run("postgresql://nobody@127.0.0.1:1/nowhere").error


def test_commands_in_its_advice_exist() -> None:
    sources = "".join(path.read_text() for path in Path(queue_checks.__file__).parent.glob("*.py"))
    commands = set(re.findall(r"`fenceline ([^`]+)`", sources.replace('"\n            f"', "")))
    assert len(commands) > 5
    for command in commands:
        words = re.sub(r"\{[^}]*\}", "x", command).replace("APP", "jobs:app").replace(" N", " 1").split()
        if words != ["doctor"]:
            parse(words)


def test_suspects_of_a_crash_are_named_with_what_to_do(database: str, sql: Session) -> None:
    for kind in ("known", "gone"):
        sql.execute("select fenceline.enqueue(%s)", (kind,))
    sql.execute("select fenceline.register_worker('died', 600)")
    sql.execute("select count(*) from fenceline.claim_jobs(1, p_limit => 2)")
    sql.execute("select fenceline.report_crash(1)")
    sql.execute("select fenceline.register_worker('alive', 600, array['known'])")
    found = findings(database)
    for kind, do in (("known", "--isolated"), ("gone", "deploy a worker")):
        finding = found["suspects", f"default {kind}"]
        assert finding["level"] == "notice"
        assert "1 job that shared a process with a crash" in finding["what"]
        assert do in finding["do"]
    sql.execute("select count(*) from fenceline.claim_jobs(2, p_limit => 2, p_alone => true)")
    assert ("suspects", "default known") not in findings(database), "it has got its process"
    assert findings(database, "--patience", "0")["suspects", "default gone"]["level"] == "problem"


def test_a_worker_whose_loop_is_blocked_is_named(database: str, sql: Session) -> None:
    sql.execute("select fenceline.enqueue('slow')")
    sql.execute("select fenceline.register_worker('busy', 600)")
    [(job,)] = sql.execute("select job_id from fenceline.claim_jobs(1)").fetchall()
    sql.execute("select fenceline.keep_leases(array[1], %s)", (json.dumps({"1": {"seconds": 42, "job_id": job}}),))
    finding = findings(database)["blocked_worker", "busy"]
    [(name,)] = sql.execute("select fenceline.public_id(%s)", (job,)).fetchall()
    assert finding["level"] == "notice"
    assert name in finding["what"]
    [worker] = json.loads(Program(Path(), database)("workers", "--json").out)["items"]
    assert (worker["blocked_seconds"] >= 42, worker["blocked_by"]) == (True, name)
    assert "blocked for" in Program(Path(), database)("workers").out
    sql.execute("select fenceline.keep_leases(array[1])")
    assert ("blocked_worker", "busy") not in findings(database)


def test_watch_tells_what_is_new_and_what_is_over(database: str, sql: Session, tmp_path: Path) -> None:
    program = Program(tmp_path, database)
    with subprocess.Popen(
        [FENCELINE, "doctor", "--watch", "--interval", "0.2", "--json"],
        cwd=tmp_path, env=program.environment, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        killer = threading.Timer(seconds_left(), process.kill)
        killer.start()
        assert process.stdout is not None

        def next_change() -> str:
            """Of the lane; what other tests do to the server may be found too."""
            while True:
                assert process.stdout is not None
                told = json.loads(process.stdout.readline())
                if told["finding"]["check"] == "lane_without_workers":
                    return str(told["change"])

        try:
            job = enqueue(sql)
            assert next_change() == "new"
            sql.execute("select fenceline.cancel_job(%s)", (job,))
            assert next_change() == "over"
            process.terminate()
            process.wait(seconds_left())
        finally:
            killer.cancel()
            process.kill()
