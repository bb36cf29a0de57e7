"""The engine's side of one job in a batch: what its handler said about it, and how it ends."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fenceline.context.attempt import Ending
from fenceline.context.endings import ending_of_value
from fenceline.context.failure import ending_of
from fenceline.errors import StaleAttempt

if TYPE_CHECKING:
    from fenceline.context.session import Session


class BatchPart:
    __slots__ = ("_encode", "args", "error", "is_decided", "session", "value")

    def __init__(self, session: "Session", args: Any, encode: Callable[[Any], str | None]) -> None:
        self.session = session
        self.args = args
        self._encode = encode
        self.value: Any = None
        self.error: BaseException | None = None
        self.is_decided = False  # the handler has said how it ended

    def succeed(self, value: Any) -> None:
        """Raises InvalidResult here, because later it would fail the whole batch."""
        ending_of_value(self.session, value, self._encode)
        self._decide(None, value)

    def fail(self, error: BaseException) -> None:
        self._decide(error, None)

    def _decide(self, error: BaseException | None, value: Any) -> None:
        if self.session.transaction_done is not None:
            raise StaleAttempt(f"job {self.session.attempt.id} has ended with the transaction of its batch")
        self.error, self.value, self.is_decided = error, value, True

    def ending(self) -> Ending:
        """How it ends if nothing else goes wrong."""
        attempt = self.session.attempt
        if self.error is not None:
            ending = ending_of(attempt, self.error)
        else:
            ending = ending_of_value(self.session, self.value, self._encode)
        done = self.session.transaction_done
        return ending if done is None else ending._replace(outcome=done, is_written=True)

    def take(self) -> Any:
        """Its value, if it is the only job: then it ends as any other job does. Raises what it failed with."""
        if self.error is not None:
            raise self.error
        return self.value
