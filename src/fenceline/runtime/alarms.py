"""A notification is only a hint: anybody who may connect can send one, with any payload.

So a listener always asks the database, and after many false alarms in a row it follows further ones more slowly.
Polling, which nobody can forge, goes on all the while.
"""

from dataclasses import dataclass

#: Some are normal: in a fleet another worker is often quicker.
FREE_ALARMS = 10
STEP_SECONDS = 0.01
MAX_SECONDS = 0.25
#: The most that a bigint has.
MAX_DIGITS = 19


@dataclass(slots=True)
class FalseAlarms:
    """How many notifications in a row led to nothing."""

    in_a_row: int = 0

    def count(self, *, false: bool) -> None:
        self.in_a_row = self.in_a_row + 1 if false else 0

    @property
    def pause_seconds(self) -> float:
        """How long to wait before following the next one."""
        return min(MAX_SECONDS, STEP_SECONDS * max(0, self.in_a_row - FREE_ALARMS))


def read_ids(payload: str) -> set[int]:
    """The job ids in a payload, separated by commas; anything else in it is ignored."""
    return {int(part) for part in payload.split(",") if part.isdecimal() and len(part) <= MAX_DIGITS}
