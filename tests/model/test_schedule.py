"""What is decided about ticks: on time, missed, in a window."""

from datetime import UTC, datetime, timedelta
from typing import Any

from fenceline.model.schedule import LOOKBACK, Schedule, decide

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)  # a Monday


def schedule(**settings: Any) -> Schedule:
    values: dict[str, Any] = {
        "name": "s", "kind": "work", "args": {}, "options": {}, "tenant": "default", "cron": "0 * * * *", "every": None,
        "timezone": "UTC", "misfire": "once", "misfire_limit": 3, "windows": [], "paused": False, "source": "operator",
        "overrides": {}, "revision": 1, "settled_at": NOON, "next_at": NOON + timedelta(hours=1), "last_at": None,
        "last_job": None, "error": None, "created_at": NOON, "changed_at": NOON, "changed_by": None,
        "declared_at": None, "now": NOON,
    }  # fmt: skip
    return Schedule(**{**values, **settings})


def decided(now: datetime, **settings: Any) -> list[tuple[int, str]]:
    """Hour and outcome of each tick."""
    decision = decide(schedule(**settings), now)
    assert decision.until == now
    assert decision.next_at is not None
    assert decision.next_at > now
    return [(tick.hour, outcome) for tick, outcome in zip(decision.ticks, decision.outcomes, strict=True)]


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return NOON.replace(hour=hour, minute=minute, second=second)


def test_a_tick_within_a_minute_is_on_time_whatever_the_policy() -> None:
    for misfire in ("skip", "once", "all"):
        assert decided(at(12, 59), misfire=misfire) == []
        assert decided(at(13), misfire=misfire) == [(13, "fire")]
        assert decided(at(13, 1), misfire=misfire) == [(13, "fire")]


def test_missed_ticks_are_skipped() -> None:
    assert decided(at(15, 30), misfire="skip") == [(13, "missed"), (14, "missed"), (15, "missed")]
    assert decided(at(15, 0, 5), misfire="skip") == [(13, "missed"), (14, "missed"), (15, "fire")]


def test_missed_ticks_are_made_up_for_once() -> None:
    assert decided(at(15, 30)) == [(13, "missed"), (14, "missed"), (15, "fire")]
    assert decided(at(15, 0, 5)) == [(13, "missed"), (14, "missed"), (15, "fire")]


def test_all_missed_ticks_are_run_up_to_the_limit() -> None:
    hours = [(13, "missed"), (14, "fire"), (15, "fire"), (16, "fire")]
    assert decided(at(16, 30), misfire="all") == hours
    assert decided(at(17, 0, 5), misfire="all") == [*hours, (17, "fire")]


def test_a_tick_is_missed_when_the_next_has_come() -> None:
    now = NOON + timedelta(seconds=5.5)
    decision = decide(schedule(cron=None, every=1, misfire="once"), now)
    assert decision.outcomes == ["missed"] * 4 + ["fire"]
    assert decide(schedule(cron=None, every=1, misfire="all", misfire_limit=9), now).outcomes == ["fire"] * 5


def test_ticks_in_a_window_are_skipped_and_say_so() -> None:
    windows = [{"days": "mon", "from": "13:00", "to": "15:00"}]
    assert decided(at(13), windows=windows) == [(13, "window")]
    assert decided(at(15, 0, 1), windows=windows) == [(13, "window"), (14, "window"), (15, "fire")]
    assert decided(at(13), windows=[{"days": "tue", "from": "13:00", "to": "15:00"}]) == [(13, "fire")]


def test_windows_are_in_the_zone_of_the_schedule() -> None:
    windows = [{"from": "15:00", "to": "16:00"}]
    assert decided(at(13), windows=windows, timezone="Europe/Berlin") == [(13, "window")]
    assert decided(at(13), windows=windows) == [(13, "fire")]


def test_nothing_is_made_up_for_inside_a_window() -> None:
    windows = [{"from": "15:30", "to": "17:00"}]
    for misfire in ("skip", "once", "all"):
        expected = [(13, "missed"), (14, "missed"), (15, "missed"), (16, "window")]
        assert decided(at(16, 30), misfire=misfire, windows=windows) == expected


def test_a_tick_just_before_a_window_fires_though_its_turn_comes_inside() -> None:
    windows = [{"from": "13:00", "to": "14:00"}]
    assert decided(at(13), windows=windows, cron="59 12 * * *") == [(12, "fire")]
    assert decided(at(13, 0, 1), windows=windows, cron="59 12 * * *") == [(12, "missed")]


def test_of_very_many_missed_ticks_the_first_stands_for_the_rest() -> None:
    decision = decide(schedule(cron="* * * * *", misfire="all"), NOON + timedelta(days=30))
    assert len(decision.ticks) == LOOKBACK
    assert decision.from_at[0] == NOON + timedelta(minutes=1)
    assert decision.from_at[1:] == [None] * (LOOKBACK - 1)
    assert decision.outcomes.count("fire") == 4  # the one that is on time, and three


def test_the_next_runs_leave_out_windows_and_are_in_the_zone() -> None:
    berlin = schedule(timezone="Europe/Berlin", windows=[{"from": "15:00", "to": "17:00"}])
    runs = [run.isoformat() for run in berlin.next_runs(3)]
    assert runs == ["2026-06-01T17:00:00+02:00", "2026-06-01T18:00:00+02:00", "2026-06-01T19:00:00+02:00"]
    assert schedule(paused=True).next_runs() == []
    assert schedule(windows=[{"from": "00:00", "to": "24:00"}]).next_runs() == []


def test_the_next_runs_are_never_in_the_past() -> None:
    """Also when no scheduler has looked for a day."""
    assert schedule(now=NOON + timedelta(days=1)).next_runs(1) == [NOON + timedelta(days=1, hours=1)]
