"""The same commands through a real server: `--url` and `--token` instead of a database."""

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.program import FENCELINE, Hands, Program
from tests.cli.terminal import Terminal
from tests.support.patience import seconds_left

TokenOf = Callable[..., str]


@pytest.fixture
def url(fenceline: Program) -> Iterator[str]:
    """A server process on the test's database."""
    fenceline("token", "create", "--role", "platform_admin")  # not the first start: no token is shown
    with subprocess.Popen(
        [FENCELINE, "server", "--port", "0"],
        cwd=fenceline.folder,
        env=fenceline.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("Fenceline listens on "), said
            yield said.split()[-1]
            process.send_signal(signal.SIGTERM)
            process.wait(seconds_left())
        finally:
            process.kill()


@pytest.fixture
def token_of(fenceline: Program) -> TokenOf:
    def make(role: str, *options: str) -> str:
        return str(fenceline("token", "create", "--role", role, "--json", *options).json["token"])

    return make


@pytest.fixture
def remote(url: str, token_of: TokenOf, tmp_path: Path) -> Program:
    """The program as an operator far from the database."""
    program = Program(tmp_path, None)
    program.environment |= {"FENCELINE_URL": url, "FENCELINE_TOKEN": token_of("fleet_operator", "--name", "olga")}
    return program


def test_jobs_are_listed_and_shown_as_over_sql(remote: Program, fenceline: Program, hands: Hands) -> None:
    hands.enqueue("mail", labels={"project": "x"})
    hands.enqueue("ingest", needs_approval=True)
    failed = hands.finished("ingest", priority=9)
    with_work = hands.worked()
    for command in (
        ("jobs", "list"),
        ("jobs", "list", "--status", "queued", "--status", "failed", "--kind", "ingest", "--kind", "mail"),
        ("jobs", "list", "--label", "project:x", "--created-after", "1h", "--limit", "1"),
        ("jobs", "list", "--created-before", "1h"),
        ("jobs", "show", failed),
        ("jobs", "steps", with_work),
        ("jobs", "phases", with_work),
    ):
        assert remote(*command, "--json").json == fenceline(*command, "--json").json
    shown = remote("jobs", "show", failed).out
    assert "it broke" in shown
    assert "█" in shown


def test_verbs(remote: Program, hands: Hands) -> None:
    job = hands.enqueue(needs_approval=True)
    assert remote("jobs", "reprioritise", job, "5").out == f"{job} priority 5\n"
    assert remote("jobs", "approve", job, "--reason", "fine").out == f"{job} approved, now queued\n"
    assert remote("jobs", "cancel", job).out == f"{job} cancelled\n"
    assert "retried as" in remote("jobs", "retry", job).out
    second = hands.enqueue(needs_approval=True)
    assert remote("jobs", "reject", second).out == f"{second} rejected, now cancelled\n"
    events = remote("jobs", "show", job, "--json").json["events"]
    assert {event["actor"] for event in events if event["event"] == "job.approve"} == {"olga"}
    hands.enqueue_many(30, "mail")
    assert remote("jobs", "cancel", "--kind", "mail", "--yes").out == "30 jobs cancelled\n"


def test_lanes_and_workers_and_drain(remote: Program, fenceline: Program, hands: Hands) -> None:
    assert remote("lanes", "set", "reports", "--slots", "3", "--kinds", "a,b", "--json").json["slots"] == 3
    assert remote("lanes", "set", "reports", "--slots", "none", "--json").json["slots"] is None
    assert "drained" in remote("lanes", "drain", "reports").out
    assert "open" in remote("lanes", "resume", "reports").out
    over_sql = fenceline("lanes", "list", "--json").json["items"]
    assert [lane["name"] for lane in remote("lanes", "list", "--json").json["items"]] == [
        lane["name"] for lane in over_sql
    ]
    hands.enqueue()
    hands.claim()
    (worker,) = remote("workers", "--json").json["items"]
    assert (worker["name"], worker["running"], worker["runner"]) == ("hands", 1, False)
    assert "hands" in remote("workers").out
    assert remote("drain", "--reason", "upgrade").code == 0
    assert hands.value("select draining from fenceline.setting")
    assert remote("resume").code == 0
    assert not hands.value("select draining from fenceline.setting")


def test_logs_follow_to_the_end(remote: Program, hands: Hands) -> None:
    job = hands.enqueue()
    held = hands.claim()
    hands.log(held, *({"message": f"line {n}"} for n in range(1200)))

    def end() -> None:
        hands.log(held, {"message": "last"})
        hands.finish(held)

    ended = threading.Timer(1.0, end)
    ended.start()
    ran = remote("jobs", "logs", "-f", job, "--json")
    ended.join()
    assert ran.code == 0
    messages = [json.loads(line)["message"] for line in ran.out.splitlines()]
    assert messages == [*(f"line {n}" for n in range(1200)), "last"]
    assert "succeeded" in ran.err


def test_top_over_http(remote: Program, hands: Hands) -> None:
    jobs = hands.enqueue_many(2, "ingest", lane="interactive")
    held = hands.start(hands.claim("interactive"))
    hands.progress(held, "inventory", done=1, total=4)
    command = [FENCELINE, "top", "--interval", "0.3"]
    with Terminal(command, folder=remote.folder, environment=remote.environment) as terminal:
        terminal.until_line("interactive", "1/2")
        terminal.until_line(jobs[0], "inventory ███░░░░░░░░░ 1/4")
        terminal.until_line(jobs[1], "queued")
        terminal.press("\x1b[Bd")
        terminal.until("Drain lane interactive?")
        terminal.press("y")
        terminal.until_line("▊  y")
        terminal.press("\r")
        terminal.until_line("interactive", "drained")
        hands.finish(held)
        terminal.until(jobs[0], gone=True)
        terminal.until_line("interactive", "0.1")  # one end in the last ten seconds
        terminal.press("q")
        assert terminal.exit_code() == 0


def test_a_wrong_token_and_one_that_may_not(remote: Program, url: str, token_of: TokenOf, hands: Hands) -> None:
    wrong = remote("jobs", "list", "--token", "nonsense").error
    assert "give a valid token with --token (or FENCELINE_TOKEN)" in wrong
    assert "nonsense" not in wrong
    del remote.environment["FENCELINE_TOKEN"]
    assert "--token" in remote("jobs", "list").error
    viewer = token_of("viewer")
    assert remote("jobs", "list", "--token", viewer, "--json").json["items"] == []
    assert "this token's role may not do that" in remote("lanes", "drain", "default", "--token", viewer).error
    assert hands.value("select enabled from fenceline.lane where name = 'default'")


def test_what_is_not_there(remote: Program, hands: Hands) -> None:
    assert "does not exist" in remote("lanes", "drain", "nowhere").error
    assert "0003-G923-0VQV-SW0" in remote("jobs", "show", "0003-G923-0VQV-SW0").error
    assert "the check symbols do not fit" in remote("jobs", "show", "0003-G923-0VQV-SWR").error
    job = hands.enqueue()
    assert job in remote("jobs", "approve", job).error


def test_enqueue_and_depth(remote: Program, fenceline: Program) -> None:
    command = (
        "enqueue", "mail", "--args", '{"to": "ada"}', "--run-at", "2100-01-01T00:00:00Z", "--idempotency-key", "once",
        "--label", "project:x", "--key", "k", "--priority", "3",
    )  # fmt: skip
    job = remote(*command).out.strip()
    assert remote(*command).out.strip() == job
    shown = fenceline("jobs", "show", job, "--json").json
    assert (shown["status"], shown["created_by"], shown["priority"], shown["args"]) == (
        "scheduled", "olga", 3, {"to": "ada"},
    )  # fmt: skip
    remote("enqueue", "mail", "--json")
    assert remote("depth").out == "1\n"
    assert remote("depth", "--lane", "system").out == "0\n"
    assert fenceline("depth", "--json").json == {"depth": 1}
    for program in (remote, fenceline):
        later = program("enqueue", "mail", "--run-in", "60").out.strip()
        assert fenceline("jobs", "show", later, "--json").json["status"] == "scheduled"


def test_schedules_as_over_sql(remote: Program, fenceline: Program, hands: Hands) -> None:
    made = remote(
        "schedules", "set", "nightly", "--kind", "report", "--cron", "0 3 * * *", "--timezone", "Europe/Berlin",
        "--args", '{"n": 1}', "--options", '{"priority": 4}', "--window", "sat-sun 00:00-24:00",
    )  # fmt: skip
    assert made.out.startswith("nightly: next runs 2"), made
    (row,) = remote("schedules", "list", "--json", "--next", "2").json["items"]
    assert (row["cron"], row["args"], row["changed_by"], len(row["next_runs"])) == ("0 3 * * *", {"n": 1}, "olga", 2)
    hands.until("select next_at is not null from fenceline.schedule")  # the server's scheduler has seen it
    assert (
        fenceline("schedules", "list", "--json", "--next", "2").json
        == remote("schedules", "list", "--json", "--next", "2").json
    )
    assert "nightly" in remote("schedules", "list").out

    assert remote("schedules", "pause", "nightly").code == 0
    assert hands.value("select paused from fenceline.schedule")
    assert remote("schedules", "resume", "nightly").code == 0
    assert not hands.value("select paused from fenceline.schedule")
    assert remote("schedules", "set", "nightly", "--every", "60", "--no-windows", "--reset", "timezone").code == 0
    (row,) = remote("schedules", "list", "--json").json["items"]
    assert (row["cron"], row["every"], row["windows"], row["timezone"]) == (None, 60, [], "UTC")
    job = remote("schedules", "run", "nightly").out.strip()
    assert hands.status(job) == "queued"
    assert remote("schedules", "delete", "nightly").code == 0
    assert remote("schedules", "list", "--json").json == {"items": []}

    assert "'nobody' does not exist" in remote("schedules", "pause", "nobody").error
    assert "needs a kind" in remote("schedules", "set", "s", "--every", "60").error
    wrong = remote("schedules", "set", "s", "--kind", "work", "--cron", "0 25 * * *").error
    assert "cron '0 25 * * *' is not valid: Bad hour" in wrong


def test_tokens(remote: Program, fenceline: Program, token_of: TokenOf) -> None:
    assert "this token's role may not do that" in remote("token", "list").error
    remote.environment["FENCELINE_TOKEN"] = token_of("platform_admin", "--name", "root")
    made = remote("token", "create", "--role", "viewer", "--name", "ci", "--expires", "30d", "--tenant", "t", "--json")
    token, token_id = made.json["token"], str(made.json["id"])
    assert (made.json["name"], made.json["tenant"], made.json["created_by"]) == ("ci", "t", "root")
    assert remote("jobs", "list", "--token", token, "--json").json["items"] == []
    plain = remote("token", "create", "--role", "viewer").out.strip()
    assert remote("jobs", "list", "--token", plain).code == 0

    ids = [row["id"] for row in fenceline("token", "list", "--json").json["items"]]
    assert [row["id"] for row in remote("token", "list", "--json").json["items"]] == ids
    assert [row["name"] for row in remote("token", "list", "--tenant", "t", "--json").json["items"]] == ["ci"]
    assert token not in remote("token", "list").out
    assert remote("token", "revoke", token_id).out == f"token {token_id} is revoked\n"
    (row,) = fenceline("token", "list", "--tenant", "t", "--json").json["items"]
    assert row["revoked_at"] is not None
    assert "does not exist" in remote("token", "revoke", "999999").error


@pytest.mark.timeout(1800)  # some twenty programs
def test_upkeep(remote: Program, hands: Hands, token_of: TokenOf) -> None:
    remote.environment["FENCELINE_TOKEN"] = token_of("platform_admin", "--name", "root")
    job = hands.enqueue(args={"card": "4111"})
    assert "must be finished" in remote("jobs", "erase", job, "--yes").error
    remote("jobs", "cancel", job)
    assert remote("jobs", "erase", job, "--yes", "--reason", "asked").out == f"{job} erased\n"
    assert "$erased" in remote("jobs", "show", job, "--json").json["args"]

    assert remote("retention", "--days", "1", "--kind", "mail", "--json").json["items"][1]["seconds"] == 86400
    assert hands.value("select actor from fenceline.event where action = 'retention.change'") == "root"
    limits = [{"tenant": None, "max_jobs": None, "jobs": None}, {"tenant": "acme", "max_jobs": 9, "jobs": 0}]
    assert remote("limits", "--jobs", "9", "--tenant", "acme", "--json").json["items"] == limits
    assert remote("limits", "--tenant", "acme", "--reset", "--json").json["items"] == limits[:1]
    # The server's own turn, which would prune as well, is a minute away.
    hands.connection.execute(
        "insert into fenceline.maintenance (task, ran_at) values ('upkeep', now()) "
        "on conflict (task) do update set ran_at = excluded.ran_at"
    )
    hands.connection.execute("update fenceline.history set ended_at = now() - interval '8 days'")
    assert remote("prune", "--json").json == {"pruned": 1}
    assert remote("sweep", "--json").json == {"swept": 0}

    hands.enqueue(lane="interactive")
    remote("lanes", "set", "interactive", "--slots", "0")
    ill = remote("doctor", "--json")
    assert ill.code == 1
    assert "stuck_jobs" in {finding["check"] for finding in json.loads(ill.out)["findings"]}
    assert "fenceline lanes set interactive" in remote("doctor").out
    viewer = token_of("viewer")
    for command in (("doctor",), ("prune",), ("sweep",), ("retention", "--days", "1"), ("limits",)):
        assert "this token's role may not do that" in remote(*command, "--token", viewer).error


def test_options_that_a_server_does_not_take(remote: Program) -> None:
    for command in (
        ("enqueue", "mail", "--tenant", "acme"),
        ("enqueue", "mail", "--timeout", "3"),
        ("lanes", "set", "default", "--default-priority", "3"),
    ):
        assert f"{command[-2]} is not available over --url" in remote(*command).error


def test_a_job_is_addressed_to_a_name_or_to_labels(remote: Program, fenceline: Program) -> None:
    for program in (remote, fenceline):
        for given, runner in (
            (["east"], "east"), (["zone=a"], {"zone": "a"}), (["zone=a", "gpu=yes"], {"zone": "a", "gpu": "yes"}),
        ):  # fmt: skip
            options = [part for text in given for part in ("--runner", text)]
            job_id = program("enqueue", "work", *options).out.strip()
            assert program("jobs", "show", job_id, "--json").json["runner"] == runner
        refused = program("enqueue", "work", "--runner", "east", "--runner", "west")
        assert refused.code == 2
        assert "use one name, or labels like region=eu" in refused.err
