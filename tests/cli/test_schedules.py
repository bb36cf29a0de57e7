"""`fenceline schedules`, as typed."""

import json

import psycopg
import pytest
from click.testing import CliRunner, Result

from fenceline.cli import main


@pytest.fixture
def runner(database: str) -> CliRunner:
    return CliRunner(env={"FENCELINE_DSN": database, "COLUMNS": "200"})


def typed(runner: CliRunner, *words: str) -> Result:
    return runner.invoke(main, ["schedules", *words])


def test_a_schedule_from_its_making_to_its_end(runner: CliRunner) -> None:
    made = typed(
        runner, "set", "nightly", "--kind", "report", "--cron", "0 3 * * *", "--timezone", "Europe/Berlin",
        "--args", '{"n": 1}', "--options", '{"priority": 4}',
        "--window", "sat-sun 00:00-24:00", "--window", "22:00-23:00",
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    assert made.output.startswith("nightly: next runs 2")

    listed = typed(runner, "list")
    assert listed.exit_code == 0
    for word in ("nightly", "report", "0 3 * * * Europe/Berlin", "on", "never"):
        assert word in listed.output
    [row] = json.loads(typed(runner, "list", "--json", "--next", "2").output)["items"]
    assert (row["name"], row["args"], row["options"]) == ("nightly", {"n": 1}, {"priority": 4})
    assert row["windows"] == [
        {"days": "sat-sun", "from": "00:00", "to": "24:00"},
        {"from": "22:00", "to": "23:00"},
    ]
    assert len(row["next_runs"]) == 2
    assert all("T03:00:00+0" in run for run in row["next_runs"])

    assert typed(runner, "pause", "nightly").exit_code == 0
    assert json.loads(typed(runner, "list", "--json").output)["items"][0]["paused"] is True
    assert typed(runner, "resume", "nightly").exit_code == 0
    assert typed(runner, "set", "nightly", "--every", "60", "--no-windows", "--reset", "timezone").exit_code == 0
    [row] = json.loads(typed(runner, "list", "--json").output)["items"]
    assert (row["cron"], row["every"], row["windows"], row["timezone"]) == (None, 60, [], "UTC")

    ran = typed(runner, "run", "nightly")
    assert ran.exit_code == 0
    assert len(ran.output.strip()) == 18
    assert typed(runner, "delete", "nightly").exit_code == 0
    assert json.loads(typed(runner, "list", "--json").output) == {"items": []}


@pytest.mark.parametrize(
    "words, says",
    [
        (["pause", "nobody"], "schedule 'nobody' does not exist"),
        (["set", "s", "--kind", "work", "--cron", "0 25 * * *"], "cron '0 25 * * *' is not valid: Bad hour"),
        (["set", "s", "--kind", "work", "--every", "60", "--timezone", "Nowhere"], "timezone 'Nowhere' is unknown"),
        (["set", "s", "--kind", "work", "--every", "60", "--window", "22:00"], "to '' of window"),
        (
            ["set", "s", "--kind", "work", "--every", "60", "--args", "{"],
            "'--args': this is not JSON",
        ),
        (["set", "s", "--every", "60"], "needs a kind"),
        (["set", "s", "--every", "60", "--misfire", "twice"], "'twice' is not one of"),
    ],
)
def test_what_is_wrong_is_one_clear_line(runner: CliRunner, words: list[str], says: str) -> None:
    failed = typed(runner, *words)
    assert failed.exit_code in (1, 2)
    assert says in failed.output
    assert "Traceback" not in failed.output


def test_a_run_has_the_policy_of_a_tick(runner: CliRunner, database: str) -> None:
    """So that a CronJob makes the jobs that the scheduler would: one retry, and then the next run comes."""
    typed(runner, "set", "nightly", "--kind", "report", "--every", "86400", "--args", '{"n": 1}')
    typed(runner, "pause", "nightly")
    ran = typed(runner, "run", "nightly")
    assert ran.exit_code == 0, ran.output
    with psycopg.connect(database) as connection:
        rows = connection.execute("select kind, args, max_attempts, created_by, status from fenceline.jobs").fetchall()
        may = "select has_function_privilege('fenceline_producer', 'fenceline.run_schedule(text, text)', 'execute')"
        allowed = connection.execute(may).fetchone()
    assert rows == [("report", {"n": 1}, 2, "schedule:nightly", "queued")]
    assert allowed == (True,)
