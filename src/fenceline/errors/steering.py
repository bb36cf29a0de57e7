"""What a handler raises to say how its job goes on."""

from datetime import timedelta

from fenceline.errors.base import FencelineError

#: The longest delay that the state machine takes.
MAX_SECONDS = 1_000_000_000


class Steering(FencelineError):
    """Raised by a handler to say how its attempt ends."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


def _seconds(what: str, given: float | timedelta) -> float:
    seconds = given.total_seconds() if isinstance(given, timedelta) else float(given)
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{what}={given!r} is out of range: use 0 to {MAX_SECONDS} seconds")
    return seconds


class RetryLater(Steering):
    """Fail this attempt and run again after so many seconds, if attempts remain; None: by the retry policy."""

    def __init__(self, reason: str = "asked to be retried later", *, after: float | timedelta | None = None) -> None:
        super().__init__(reason)
        self.after = None if after is None else _seconds("after", after)


class Snooze(Steering):
    """Run again after so many seconds; the attempt does not count."""

    def __init__(self, seconds: float | timedelta) -> None:
        self.seconds = _seconds("seconds", seconds)
        super().__init__(f"snoozed for {self.seconds} seconds")


class Fail(Steering):
    """Fail for good, whatever attempts remain."""


class Cancel(Steering):
    """End the job as cancelled."""


class Cancelled(Steering):
    """The job was asked to stop: raised at the handler's yield points."""


class Superseded(Steering):
    """A newer version of the resource was announced before: this job skips it. Uncaught, the job ends as cancelled."""


class Suspended(BaseException):
    """The handler waits: its attempt ends here, and it is run again when there is news.

    No `Exception`, so that a handler's `except Exception` lets it pass. Whoever catches all raises it again.
    """
