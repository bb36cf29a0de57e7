"""`fenceline lanes`, `workers`, `drain` and `resume`."""

import psycopg
import pytest
from tests.cli.program import Hands, Program


def test_list_shows_slots_depth_and_age(fenceline: Program, hands: Hands) -> None:
    hands.enqueue_many(3, lane="interactive")
    hands.claim("interactive")
    shown = fenceline("lanes", "list").out.splitlines()
    (line,) = [line.split() for line in shown if line.startswith("interactive")]
    assert line[1:5] == ["open", "1", "2", "2"]
    lanes = fenceline("lanes", "list", "--json").json["items"]
    assert [lane["name"] for lane in lanes] == ["default", "interactive", "maintenance", "system"]
    interactive = lanes[1]
    assert (interactive["slots"], interactive["in_use"], interactive["depth"]) == (2, 1, 2)
    assert interactive["oldest_age_seconds"] >= 0


def test_set_changes_what_is_said(fenceline: Program) -> None:
    made = fenceline("lanes", "set", "reports", "--slots", "4", "--kinds", "a,b", "--json").json
    assert (made["slots"], made["kinds"], made["enabled"]) == (4, ["a", "b"], True)
    changed = fenceline(
        "lanes", "set", "reports", "--slots", "none", "--rate-per-second", "2.5", "--fair", "--on-stale", "fail",
        "--stale-timeout-seconds", "60", "--default-priority", "-2", "--poll-interval-ms", "100", "--json",
    ).json  # fmt: skip
    assert changed["slots"] is None
    assert changed["rate_per_second"] == 2.5
    assert changed["fair"] is True
    assert (changed["on_stale"], changed["stale_timeout_seconds"]) == ("fail", 60)
    assert (changed["default_priority"], changed["poll_interval_ms"]) == (-2, 100)
    assert changed["kinds"] == ["a", "b"]
    assert fenceline("lanes", "set", "reports", "--delivery", "arq", "--json").json["delivery"] == "arq"
    assert fenceline("lanes", "set", "reports", "--delivery", "none", "--json").json["delivery"] is None
    assert "inline" in fenceline("lanes", "set", "reports", "--delivery", "inline").error
    assert fenceline("lanes", "set", "reports", "--create", "--slots", "2", "--json").json["slots"] == 2  # as in 0.1
    assert "lane 'typo' does not exist" in fenceline("lanes", "drain", "typo").error
    assert fenceline("lanes", "set", "reports").code == 2


def test_the_delivery_of_a_lane_is_shown_where_there_is_one(fenceline: Program) -> None:
    assert "DELIVERY" not in fenceline("lanes", "list").out
    [_head, line] = fenceline("lanes", "set", "default", "--delivery", "arq").out.splitlines()
    assert "arq" in line.split()
    assert "DELIVERY" in fenceline("lanes", "list").out


def test_drain_and_resume_a_lane(fenceline: Program, hands: Hands) -> None:
    assert "drained" in fenceline("lanes", "drain", "default").out
    hands.enqueue()
    assert hands.connection.execute(
        "select * from fenceline.claim_jobs(%s, 'default', 1)", (hands.worker,)
    ).fetchall() == []  # fmt: skip
    assert "open" in fenceline("lanes", "resume", "default").out
    hands.claim()


def test_drain_and_resume_the_system(fenceline: Program, hands: Hands) -> None:
    assert "fenceline resume" in fenceline("drain", "--reason", "upgrade").out
    with pytest.raises(psycopg.Error, match="drain"):
        hands.enqueue()
    assert "draining" in fenceline("jobs", "retry", _ended(hands)).error
    assert fenceline("resume").code == 0
    hands.enqueue()
    reasons = hands.connection.execute("select action, reason from fenceline.event order by id").fetchall()
    assert ("system.drain", "upgrade") in reasons


def _ended(hands: Hands) -> str:
    hands.connection.execute("update fenceline.setting set draining = false")
    job = hands.finished()
    hands.connection.execute("update fenceline.setting set draining = true")
    return job


def test_workers_with_what_they_hold(fenceline: Program, hands: Hands) -> None:
    hands.enqueue()
    hands.claim()
    hands.value("select fenceline.register_worker('late', 30)")
    hands.connection.execute("update fenceline.worker set lease_until = now() - interval '5 s' where name = 'late'")
    gone = hands.value("select fenceline.register_worker('gone', 30)")
    hands.value("select fenceline.stop_worker(%s)", gone)
    shown = {line.split()[0]: line for line in fenceline("workers").out.splitlines()[1:]}
    assert set(shown) == {"hands", "late"}
    assert shown["hands"].split()[1:5] == ["alive", "1", "default,", "interactive"]
    assert "lease over" in shown["late"]
    every = fenceline("workers", "--stopped", "--json").json["items"]
    assert [worker["name"] for worker in every] == ["hands", "late", "gone"]
    assert every[0]["running"] == 1
    assert every[1]["lease_seconds_left"] < 0
    assert every[2]["stopped_at"] is not None


def test_no_workers(fenceline: Program) -> None:
    ran = fenceline("workers")
    assert ran.code == 0
    assert "fenceline worker APP" in ran.err
