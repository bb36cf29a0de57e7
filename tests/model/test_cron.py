from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.model.wall_clock import ZONES, Pattern, changes, expected_ticks, fixed, recurring

from fenceline.model.cron import Cron, Interval, latest_ticks, read_timing, read_zone, ticks_after

PATTERNS = [
    *(fixed(hour, minute) for hour in (0, 1, 2, 3, 23) for minute in (0, 30)),
    recurring("* * * * *", range(60)),
    recurring("*/15 * * * *", range(0, 60, 15)),
    recurring("0 * * * *", range(1)),
    recurring("30 */2 * * *", range(30, 31), range(0, 24, 2)),
    recurring("*/20 0 * * *", range(0, 60, 20), range(1)),
    recurring("*/15 5 * * *", range(0, 60, 15), range(5, 6)),
    recurring("*/10 1-3 * * *", range(0, 60, 10), range(1, 4)),
]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("name", ZONES)
def test_ticks_around_every_change_of_the_clocks(name: str) -> None:
    zone = ZoneInfo(name)
    days = changes(zone, 2026) or [datetime(2026, 3, 29, tzinfo=UTC)]
    assert len(days) == (1 if name == "Asia/Kolkata" else 2)
    for change in days:
        start, end = change - timedelta(hours=9), change + timedelta(hours=9)
        for pattern in PATTERNS:
            found = ticks_between(pattern, zone, start, end)
            assert found == expected_ticks(pattern, zone, start, end), (pattern.cron, change)


def ticks_between(pattern: Pattern, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    return latest_ticks(Cron(pattern.cron, zone), start, end, 10_000)


@pytest.mark.parametrize("cron", ["30 2 * * *", "*/20 * * * *", "0 1 * * *"])
def test_the_next_tick_is_the_same_from_wherever_one_looks(cron: str) -> None:
    """Also from inside the repeated hour, and from fractions of a second."""
    timing = Cron(cron, ZoneInfo("Europe/Berlin"))
    for change in changes(timing.zone, 2026):
        ticks = latest_ticks(timing, change - timedelta(days=2), change + timedelta(days=2), 1000)
        seen = change - timedelta(days=1, microseconds=1)
        while seen < change + timedelta(days=1):
            assert timing.next_after(seen) == min(tick for tick in ticks if tick > seen)
            seen += timedelta(minutes=7, microseconds=333_333)


def test_what_the_rules_say_in_berlin() -> None:
    berlin = ZoneInfo("Europe/Berlin")

    def local(cron: str, after: str, count: int) -> list[str]:
        ticks = ticks_after(Cron(cron, berlin), moment(after))
        return [next(ticks).astimezone(berlin).strftime("%d %H:%M %Z") for _ in range(count)]

    # The clocks go from 02:00 to 03:00 on 29 March, and from 03:00 back to 02:00 on 25 October.
    assert local("30 2 * * *", "2026-03-28T12:00Z", 2) == ["29 03:00 CEST", "30 02:30 CEST"]
    assert local("*/30 * * * *", "2026-03-29T00:15Z", 3) == ["29 01:30 CET", "29 03:00 CEST", "29 03:30 CEST"]
    assert local("30 2 * * *", "2026-10-24T12:00Z", 2) == ["25 02:30 CEST", "26 02:30 CET"]
    assert local("30 * * * *", "2026-10-24T23:45Z", 3) == ["25 02:30 CEST", "25 02:30 CET", "25 03:30 CET"]
    assert local("0,30 2 * * *", "2026-03-28T12:00Z", 2) == ["29 03:00 CEST", "30 02:00 CEST"]


def test_a_tick_that_is_far_away_is_found() -> None:
    timing = Cron("*/30 0 29 2 *", ZoneInfo("Europe/Berlin"))
    assert timing.next_after(moment("2026-07-01T00:00Z")) == moment("2028-02-28T23:00Z")
    assert timing.next_after(moment("2028-02-28T23:30Z")) == moment("2032-02-28T23:00Z")


def test_intervals_are_anchored_in_1970() -> None:
    assert Interval(90).next_after(moment("1970-01-01T00:01:30Z")) == moment("1970-01-01T00:03:00Z")
    assert Interval(3600).next_after(moment("2026-03-29T00:59:59.999999Z")) == moment("2026-03-29T01:00:00Z")
    assert Interval(86400).next_after(moment("2026-03-29T05:00:00+02:00")) == moment("2026-03-30T00:00:00Z")


def test_of_very_many_ticks_the_latest_are_found() -> None:
    timing = Cron("* * * * *", ZoneInfo("UTC"))
    start, end = moment("2000-01-01T00:00Z"), moment("2026-01-01T00:00Z")
    assert latest_ticks(timing, start, end, 1000) == latest_ticks(timing, end - timedelta(minutes=1000), end, 2000)
    assert latest_ticks(Interval(86400 * 30), start, end, 1000)[0] == Interval(86400 * 30).next_after(start)
    assert latest_ticks(timing, end, end, 10) == []


@pytest.mark.parametrize(
    "cron, says",
    [
        ("0 25 * * *", "cron '0 25 * * *' is not valid: Bad hour"),
        ("every day", "cron 'every day' is not valid: use five fields"),
        ("* * * * * *", "cron '* * * * * *' is not valid: use five fields"),
        ("", "cron '' is not valid"),
        ("0 0 30 2 *", "cron '0 0 30 2 *' is not valid: Bad day-of-month"),
        ("* * */20 * 1L", "never fires"),
    ],
)
def test_a_wrong_cron_is_named(cron: str, says: str) -> None:
    with pytest.raises(ValueError, match="cron") as error:
        read_timing(cron, None, "UTC")
    assert says in str(error.value)


def test_what_else_is_wrong_is_named() -> None:
    for zone in ("Mars/Olympus", "Europe", "../UTC", ""):
        with pytest.raises(ValueError, match=f"timezone '{zone}' is unknown"):
            read_zone(zone)
    with pytest.raises(ValueError, match="either cron or every, not both: cron '0 3 ") as error:
        read_timing("0 3 * * *", 60, "UTC")
    assert "every 60" in str(error.value)
    with pytest.raises(ValueError, match="needs either cron or every"):
        read_timing(None, None, "UTC")
    with pytest.raises(ValueError, match="every 0 is out of range"):
        read_timing(None, 0, "UTC")
    with pytest.raises(ValueError, match=r"every 1\.5 is not a whole number"):
        read_timing(None, 1.5, "UTC")  # type: ignore[arg-type]  # wrong on purpose
