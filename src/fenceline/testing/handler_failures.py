"""What handlers raised while a test drained the queue."""

from collections.abc import Sequence

from fenceline.context.attempt import Ending
from fenceline.engine.statistics import RunStatistics
from fenceline.errors import RetryLater


class Failures(RunStatistics):
    """The exceptions of those attempts whose failure the database accepted."""

    def __init__(self) -> None:
        super().__init__(by_kind=False)
        self._causes: list[Exception] = []

    def note_ended(self, endings: Sequence[Ending]) -> None:
        super().note_ended(endings)
        for ending in endings:
            if ending.outcome.is_failure:
                self._note(ending.cause)

    def _note(self, cause: BaseException | None) -> None:
        if cause is None or isinstance(cause, RetryLater):  # asking for a retry is not a failure
            return
        if not isinstance(cause, Exception):
            raised, cause = cause, RuntimeError(f"the handler raised {cause!r}")
            cause.__cause__ = raised
        self._causes.append(cause)

    def raise_all(self) -> None:
        """Raise a single exception as it is, several as a group."""
        match self._causes:
            case []:
                return
            case [cause]:
                raise cause
            case causes:
                raise ExceptionGroup(f"{len(causes)} attempts failed", causes)
