"""One job of a batch: what its handler sees of it, and how it tells what became of it."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fenceline.context.attempt_facts import JobFacts
from fenceline.context.batch_part import BatchPart

if TYPE_CHECKING:
    from fenceline.context.redaction import Credentials

T = TypeVar("T")


class BatchItem(JobFacts, Generic[T]):
    """One of the jobs that a batch handler is given.

    Unless the handler says otherwise, a job has succeeded when the handler returns, and has failed when it raises. What
    it says with `succeed` and `fail` counts in either case; the last call counts.
    """

    __slots__ = ("_part",)

    def __init__(self, part: BatchPart) -> None:
        super().__init__(part.session)
        self._part = part

    def __repr__(self) -> str:
        return f"<BatchItem {self.id} {self.args!r}>"

    @property
    def args(self) -> T:
        """The job's args, as the type that the handler declares."""
        args: T = self._part.args
        return args

    @property
    def id(self) -> str:
        """The job's public id."""
        return self._session.attempt.id

    @property
    def credentials(self) -> "Credentials | None":
        """Temporary credentials for the job's `identity`; None if it has none, or the app has no provider."""
        return self._session.credentials

    def succeed(self, result: Any = None) -> None:
        """This job has succeeded, whatever becomes of the others, with this result (JSON). Raises InvalidResult."""
        self._part.succeed(result)

    def fail(self, error: BaseException | str) -> None:
        """This job has failed, as if a handler of it alone had raised this error. It is retried alone, by its policy.

        `RetryLater`, `Snooze`, `Fail` and `Cancel` mean what they mean when they are raised.
        """
        self._part.fail(RuntimeError(error) if isinstance(error, str) else error)
