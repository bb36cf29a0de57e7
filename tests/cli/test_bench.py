"""`fenceline bench`: rates, and nothing left behind."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.program import FENCELINE, Hands, Program
from tests.cli.terminal import Terminal
from tests.support.patience import seconds_left

NAME = "fenceline-bench"
MANY = "1000000"  # far more than are done before the test ends it


def assert_nothing_is_left(hands: Hands) -> None:
    for table in ("job", "history", "ready", "running", "timer"):
        column = "id" if table == "job" else "job_id"
        left = hands.value(
            f"select count(*) from fenceline.{table} t where not exists "
            f"(select 1 from fenceline.job j where j.id = t.{column} and j.kind <> '{NAME}')"
        )
        assert left == 0, table
    assert hands.value("select count(*) from fenceline.lane where name = %s", NAME) == 0
    assert hands.value("select count(*) from fenceline.worker where name = %s and stopped_at is null", NAME) == 0


@contextmanager
def bench_under_way(fenceline: Program, hands: Hands, *, ready: int) -> Iterator["subprocess.Popen[str]"]:
    """A run that will go on for long, and has enqueued so many jobs."""
    with subprocess.Popen(
        [FENCELINE, "bench", "--jobs", MANY],
        cwd=fenceline.folder, env=fenceline.environment, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - as in Terminal
    ) as program:  # fmt: skip
        try:
            hands.until(f"select count(*) > {ready} from fenceline.ready")
            yield program
        finally:
            program.kill()


def has_finished_some(hands: Hands) -> bool:
    return bool(hands.value("select exists (select 1 from fenceline.history where final)"))


def test_it_measures_and_leaves_the_queue_as_it_was(fenceline: Program, hands: Hands) -> None:
    waiting = hands.enqueue("mail")
    done = hands.finished("ingest", lane="interactive")
    lanes = fenceline("lanes", "list", "--json").json
    told = fenceline("bench", "--jobs", "1200", "--json").json
    assert [(rate["measurement"], rate["jobs"]) for rate in told["results"]] == [
        ("enqueue, one by one", 300),
        ("enqueue_many, 500 at a time", 1200),
        ("claim + finish, 500 at a time", 1500),
    ]
    for rate in told["results"]:
        assert abs(rate["jobs_per_second"] * rate["seconds"] - rate["jobs"]) < 1
        assert 0 < rate["median_ms"] <= rate["seconds"] * 1000
    assert told["settings"]["fsync"] in ("on", "off")
    assert_nothing_is_left(hands)
    assert hands.status(waiting) == "queued"
    assert hands.status(done) == "failed"
    after = fenceline("lanes", "list", "--json").json
    assert [(lane["name"], lane["depth"]) for lane in after["items"]] == [
        (lane["name"], lane["depth"]) for lane in lanes["items"]
    ]
    # Three deletions of 500 are three lines, not 1,500.
    assert hands.value("select count(*) from fenceline.event where action = 'jobs.delete'") == 3
    assert hands.value("select sum((before ->> %s)::integer) from fenceline.event", NAME) == 1500


def test_people_see_a_bar_and_then_a_table(fenceline: Program, hands: Hands) -> None:
    command = [FENCELINE, "bench", "--jobs", "3000"]
    with Terminal(command, folder=fenceline.folder, environment=fenceline.environment) as terminal:
        terminal.until("/6600", "━")
        assert terminal.exit_code() == 0
        assert "3,300" in terminal.line("claim + finish")
        assert "synchronous_commit" in terminal.text
    assert_nothing_is_left(hands)


def test_ctrl_c_tidies_up(fenceline: Program, hands: Hands) -> None:
    with bench_under_way(fenceline, hands, ready=1000) as program:
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=seconds_left())
    assert program.returncode == 130
    assert "Traceback" not in said
    assert_nothing_is_left(hands)


def test_a_second_run_is_refused_and_the_next_removes_what_a_killed_one_left(fenceline: Program, hands: Hands) -> None:
    # 300 single jobs and one batch are left: some finished, some held, none with an owner.
    with bench_under_way(fenceline, hands, ready=500) as program:
        program.send_signal(signal.SIGSTOP)  # it goes no further
        # Its lease is good for a minute, and for longer on a machine on which the next one starts so slowly.
        hands.connection.execute("update fenceline.worker set lease_until = now() + interval '1 hour'")
        refused = fenceline("bench", "--jobs", "1").error
        assert f"at work here already (pid {program.pid} on" in refused
    held = hands.value("select fenceline.register_worker(%s, 60, %s, %s)", NAME, [NAME], [NAME])
    hands.value("select count(*) from fenceline.claim_jobs(%s, %s, 20)", held, NAME)
    done = hands.connection.execute("select job_id, attempt_id from fenceline.running limit 10").fetchall()
    hands.value(
        "select count(*) from fenceline.finish_attempts(%s, %s)", [row[0] for row in done], [row[1] for row in done]
    )
    assert has_finished_some(hands)
    # As if a minute had gone by.
    hands.connection.execute("update fenceline.worker set lease_until = now() where name = %s", (NAME,))
    assert fenceline("bench", "--jobs", "10", "--json").json["results"][-1]["jobs"] == 20
    assert_nothing_is_left(hands)


def test_a_schema_without_the_deletion_is_noticed_before_anything_is_written(fenceline: Program, hands: Hands) -> None:
    """Nothing could be deleted again, so nothing is made."""
    hands.connection.execute("drop function fenceline.delete_jobs")
    assert "run `fenceline migrate`" in fenceline("bench").error
    assert hands.value("select count(*) from fenceline.worker where name = %s", NAME) == 0
    assert_nothing_is_left(hands)
