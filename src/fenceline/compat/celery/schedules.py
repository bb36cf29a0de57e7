"""`celery.schedules`: the times of `beat_schedule`."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from fenceline.errors import Unsupported

Field = str | int | Iterable[int]


class crontab:  # noqa: N801 - Celery's name
    """A time given by the fields of cron."""

    def __init__(
        self,
        minute: Field = "*",
        hour: Field = "*",
        day_of_month: Field = "*",
        month_of_year: Field = "*",
        day_of_week: Field = "*",
    ) -> None:
        if "*" not in (day_of_month, day_of_week):
            raise Unsupported(
                "crontab() with both day_of_month and day_of_week: Celery wants both to fit, cron either. Use one of "
                "them, and look at the other in the task"
            )
        fields = (minute, hour, day_of_month, month_of_year, day_of_week)
        self.cron = " ".join(_field(field) for field in fields)

    def __repr__(self) -> str:
        return f"<crontab {self.cron}>"


def _field(field: Field) -> str:
    if isinstance(field, str | int):
        return str(field).replace(" ", "")
    return ",".join(str(number) for number in sorted(field))


def name_of(name: str) -> str:
    """A valid name for a schedule; that of an entry may be any text."""
    return re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-")[:64]


def read_timing(schedule: Any) -> Mapping[str, Any]:
    """`cron` or `every` of a schedule. Raises Unsupported."""
    if isinstance(schedule, crontab):
        return {"cron": schedule.cron}
    seconds = schedule.total_seconds() if isinstance(schedule, timedelta) else schedule
    if isinstance(seconds, int | float) and seconds >= 1 and seconds == int(seconds):
        return {"every": int(seconds)}
    raise Unsupported(f"the schedule {schedule!r} cannot be kept: use whole seconds, a timedelta of them, or crontab()")
