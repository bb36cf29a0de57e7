"""`fenceline jobs run-now|move|delete|watch` and `fenceline stats`."""

import subprocess
import threading
from collections import Counter

from tests.cli.program import FENCELINE, Hands, Program
from tests.support.patience import seconds_left


def test_run_now_lets_scheduled_jobs_go_on(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue("later", run_at="2040-01-01T00:00:00Z")
    assert "goes on now" in fenceline("jobs", "run-now", job).out
    assert hands.status(job) == "queued"
    again = fenceline("jobs", "run-now", job)
    assert again.code == 1
    assert "must be scheduled" in again.out + again.err


def test_signal_is_kept_for_the_handler_until_the_job_ends(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue("work")
    assert fenceline("jobs", "signal", job, "go", "--payload", '{"ok": true}').out == f"{job} signalled, now queued\n"
    assert "this is not JSON" in fenceline("jobs", "signal", job, "go", "--payload", "{").err
    fenceline("jobs", "cancel", job)
    assert "cannot be signalled: it is cancelled" in fenceline("jobs", "signal", job, "go").error


def test_move_to_another_lane(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue("work")
    assert fenceline("jobs", "move", job, "--lane", "system").out == f"{job} moved to system\n"
    assert fenceline("jobs", "show", job, "--json").json["lane"] == "system"
    assert "lane 'absent' does not exist" in fenceline("jobs", "move", job, "--lane", "absent").error


def test_delete_takes_finished_jobs_only(fenceline: Program, hands: Hands) -> None:
    done, waiting = hands.finished(), hands.enqueue("work")
    assert "deleted" in fenceline("jobs", "delete", done).out
    assert "does not exist" in fenceline("jobs", "show", done).error
    refused = fenceline("jobs", "delete", waiting)
    assert refused.code == 1
    assert hands.status(waiting) == "queued"


def test_watch_tells_what_changes_until_the_end(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue("work")
    held = hands.start(hands.claim())
    with subprocess.Popen(
        [FENCELINE, "jobs", "watch", job],
        cwd=fenceline.folder, env=fenceline.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        killer = threading.Timer(seconds_left(), process.kill)
        killer.start()
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "running\n"
            hands.progress(held, "load", done=1, total=2)
            assert process.stdout.readline() == "running load\n"
            line = '[{"message": "half way", "level": "info"}]'
            hands.value("select fenceline.write_log(%s, %s, %s::jsonb)", held.job_id, held.attempt_id, line)
            assert process.stdout.readline().endswith("info    half way\n")
            hands.finish(held, "failed_for_good", error={"type": "ValueError", "message": "no"})
            assert process.wait(seconds_left()) == 1
            assert process.stdout.read() == "failed load\n"
            assert process.stderr.read() == f"{job} failed: ValueError: no\n"
        finally:
            killer.cancel()
            process.kill()


def test_errors_have_type_and_message_and_every_attempt_its_traceback(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue("work", max_attempts=2)
    for number in (1, 2):
        error = {"type": "KeyError", "message": f"no {number}", "code": "error", "traceback": f"File {number}"}
        hands.finish(hands.claim(), "failed", error=error)
        if number == 1:
            fenceline("jobs", "run-now", job)
    shown = fenceline("jobs", "show", job).out
    for number in (1, 2):
        assert f"traceback of attempt {number}\nFile {number}" in shown
        assert f"KeyError: no {number}" in shown
    assert "KeyError: no 2" in fenceline("jobs", "list").out


def test_stats_with_bars(fenceline: Program, hands: Hands) -> None:
    hands.finished("ingest")
    hands.enqueue("mail")
    hands.enqueue("mail", run_at="2040-01-01T00:00:00Z")
    hands.enqueue("held", priority=99)
    hands.start(hands.claim())
    backlog = fenceline("stats", "backlog").out.splitlines()
    assert backlog[1].split()[:2] == ["mail", "default"]
    assert "█" in backlog[1]
    assert fenceline("stats", "active").out.splitlines()[1].split()[1:3] == ["held", "running"]
    errors = fenceline("stats", "errors").out.splitlines()[1]
    assert errors.split()[0] == "ingest"
    assert "100.0%" in errors
    assert fenceline("stats", "throughput").out.splitlines()[1].split()[-2:] == ["1", "1"]
    assert len(fenceline("stats", "slow").out.splitlines()) == 3
    for what in ("backlog", "active", "errors", "throughput", "slow"):
        assert fenceline("stats", what, "--json").json["items"]


def test_throughput_is_per_tenant(fenceline: Program, hands: Hands) -> None:
    for tenant in ("acme", "beta", "beta"):
        hands.finished(tenant=tenant)
    ended = Counter[str]()
    for line in fenceline("stats", "throughput").out.splitlines()[1:]:
        _from, tenant, *_bar, count, _failed = line.split()
        ended[tenant] += int(count)
    assert ended == {"acme": 1, "beta": 2}


def test_stats_of_an_empty_queue(fenceline: Program, hands: Hands) -> None:
    for what in ("backlog", "throughput"):
        assert fenceline("stats", what).err == "Nothing.\n"


def test_what_explain_says_can_be_typed(fenceline: Program, hands: Hands) -> None:
    """Every command that is shown is one that there is."""
    later = hands.enqueue("later", run_at="2040-01-01T00:00:00Z")
    running = hands.enqueue("now")
    hands.start(hands.claim())
    shown = [
        command for job in (later, running) for command in fenceline("jobs", "explain", job, "--json").json["commands"]
    ]
    assert {" ".join(command.split()[:3]) for command in shown} == {
        "fenceline jobs run-now", "fenceline jobs watch", "fenceline jobs cancel",
    }  # fmt: skip
    for command in shown:
        assert fenceline(*command.split()[1:3], "--help").code == 0, command
