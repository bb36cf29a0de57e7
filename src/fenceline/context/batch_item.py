"""One job of a batch: what its handler sees of it, and what it says of it."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fenceline.context.attempt import Request
from fenceline.context.batch_part import BatchPart

if TYPE_CHECKING:
    from fenceline.context.redaction import Credentials

T = TypeVar("T")


class BatchItem(Generic[T]):
    """One job among those that a batch handler is given.

    A job that the handler says nothing of has succeeded when the handler returns, and has failed when it raises. What
    `succeed` and `fail` say counts either way, and the last word counts.
    """

    __slots__ = ("_part",)

    def __init__(self, part: BatchPart) -> None:
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
        return self._part.session.attempt.id

    @property
    def job(self) -> Request:
        """The job: its public id, with the facts of the request (kind, tenant, labels, snapshot …) as attributes."""
        return Request(self._part.session.attempt)

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1. Only first attempts share a batch: later ones are alone in theirs."""
        return self._part.session.attempt.number

    @property
    def token(self) -> int:
        """The fencing token of this attempt: give it to outside systems that can refuse an older one."""
        return self._part.session.attempt.token

    @property
    def credentials(self) -> "Credentials | None":
        """Temporary credentials for the job's `identity`; None: it has none, or the app has no provider."""
        return self._part.session.credentials

    @property
    def cancelled(self) -> bool:
        """Whether this job was asked to stop. The others go on."""
        return self._part.session.cancelled

    def log(self, message: str, /, *, level: str = "info", **fields: Any) -> None:
        """Add a line to this job's log, with a `level` and any fields."""
        self._part.session.log(str(message), level, fields)

    def succeed(self, result: Any = None) -> None:
        """This job is done, whatever becomes of the others; `result` (JSON) is its result. Raises InvalidResult."""
        self._part.succeed(result)

    def fail(self, error: BaseException | str) -> None:
        """This job has failed, as if the handler of it alone had raised this: it is retried by its policy, alone.

        `RetryLater`, `Snooze`, `Fail` and `Cancel` mean what they mean when they are raised.
        """
        self._part.fail(RuntimeError(error) if isinstance(error, str) else error)
