"""What a notification is worth: a hint. Anybody who may connect can send one, with any payload.

So whoever hears one asks the database, and whoever was called for nothing many times in a row follows the next ones
more slowly. Polling, which nobody can forge, goes on beside it.
"""

from dataclasses import dataclass

#: In a fleet another worker is often quicker, so some calls in vain are nothing strange.
FREE_ALARMS = 10
STEP_SECONDS = 0.01
MAX_SECONDS = 0.25
#: Of a bigint.
MAX_DIGITS = 19


@dataclass(slots=True)
class FalseAlarms:
    """Notifications in a row after which there was nothing to be found."""

    in_a_row: int = 0

    def count(self, *, false: bool) -> None:
        self.in_a_row = self.in_a_row + 1 if false else 0

    @property
    def pause_seconds(self) -> float:
        """How long to wait before the next one is followed."""
        return min(MAX_SECONDS, STEP_SECONDS * max(0, self.in_a_row - FREE_ALARMS))


def read_ids(payload: str) -> set[int]:
    """The job ids of a payload, joined by commas; whatever else there is, is passed over."""
    return {int(part) for part in payload.split(",") if part.isdecimal() and len(part) <= MAX_DIGITS}
