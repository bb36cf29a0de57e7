"""What handlers have raised while a test drained the queue."""

from collections.abc import Sequence

from fenceline.context.attempt import Ending
from fenceline.engine.statistics import RunStatistics
from fenceline.errors import RetryLater
from fenceline.model.outcome import Outcome


class Failures(RunStatistics):
    """What handlers have raised, of the attempts whose failure was accepted."""

    def __init__(self) -> None:
        super().__init__(by_kind=False)
        self._causes: list[Exception] = []

    def note_ended(self, endings: Sequence[Ending]) -> None:
        super().note_ended(endings)
        for ending in endings:
            if (
                ending.outcome in {Outcome.FAILED, Outcome.FAILED_FOR_GOOD, Outcome.REFUSED}
                and ending.cause is not None
            ):
                self._note(ending.cause)

    def _note(self, cause: BaseException) -> None:
        if isinstance(cause, RetryLater):
            return  # that is no accident
        if not isinstance(cause, Exception):
            said, cause = cause, RuntimeError(f"the handler raised {cause!r}")
            cause.__cause__ = said
        self._causes.append(cause)

    def raise_all(self) -> None:
        """Raise what there is: one exception as it is, several as a group."""
        match self._causes:
            case []:
                return
            case [cause]:
                raise cause
            case causes:
                raise ExceptionGroup(f"{len(causes)} attempts failed", causes)
