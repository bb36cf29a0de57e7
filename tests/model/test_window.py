from datetime import datetime
from typing import Any

import pytest

from fenceline.model.window import Window, read_windows


def covered(window: dict[str, str], *times: str) -> list[bool]:
    return [Window.from_json(window).covers(datetime.fromisoformat(time)) for time in times]


def test_a_window_lasts_until_before_its_end() -> None:
    window = {"days": "mon-fri", "from": "09:00", "to": "17:30"}
    # 2026-06-05 is a Friday.
    assert covered(window, "2026-06-05T08:59:59", "2026-06-05T09:00", "2026-06-05T17:29:59") == [False, True, True]
    assert covered(window, "2026-06-05T17:30", "2026-06-06T12:00") == [False, False]


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    window = {"days": "fri", "from": "22:00", "to": "04:00"}
    assert covered(window, "2026-06-05T21:59", "2026-06-05T22:00", "2026-06-06T03:59") == [False, True, True]
    assert covered(window, "2026-06-06T04:00", "2026-06-05T03:00", "2026-06-06T22:00") == [False, False, False]


def test_days() -> None:
    assert Window.from_json({"from": "00:00", "to": "24:00"}).days == frozenset(range(7))
    assert Window.from_json({"days": "sat-mon,wed", "from": "00:00", "to": "24:00"}).days == {5, 6, 0, 2}
    assert covered({"days": "sun", "from": "00:00", "to": "24:00"}, "2026-06-07T23:59:59") == [True]


@pytest.mark.parametrize(
    "window, says",
    [
        ({"from": "22:00"}, "window {'from': '22:00'} is not valid"),
        ({"from": "22:00", "to": "23:00", "day": "mon"}, "is not valid"),
        ("22:00-23:00", "is not valid"),
        ({"from": "25:00", "to": "23:00"}, "from '25:00' of window"),
        ({"from": "24:00", "to": "23:00"}, "from '24:00' of window"),
        ({"from": "22:00", "to": 23}, "to 23 of window"),
        ({"from": "22:00", "to": "22:00"}, "is empty"),
        ({"from": "22:00", "to": "23:00", "days": "monday"}, "days 'monday' of window"),
        ({"from": "22:00", "to": "23:00", "days": "mon-"}, "days 'mon-' of window"),
        ({"from": "22:00", "to": "23:00", "days": ""}, "days '' of window"),
        ({"from": "22:00", "to": "23:00", "days": 5}, "days 5 of window"),
    ],
)
def test_a_wrong_window_is_named(window: Any, says: str) -> None:
    with pytest.raises(ValueError, match="window") as error:
        read_windows([window])
    assert says in str(error.value)


@pytest.mark.parametrize("given", ["mon", {"from": "22:00", "to": "23:00"}, 5])
def test_windows_are_a_list(given: Any) -> None:
    with pytest.raises(ValueError, match="is not a list of windows"):
        read_windows(given)
