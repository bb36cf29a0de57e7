"""What a handler knows about its attempt, whether it blocks or not, alone or in a batch."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from fenceline.context.attempt import Parent, Request
from fenceline.context.redaction import Credentials
from fenceline.errors import InvalidOption

if TYPE_CHECKING:
    from fenceline.context.session import Session


class JobFacts:
    __slots__ = ("_session",)

    def __init__(self, session: "Session") -> None:
        self._session = session

    @property
    def job(self) -> Request:
        """The job: its public id, with the facts of the request (kind, tenant, labels, snapshot …) as attributes."""
        return Request(self._session.attempt)

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._session.attempt.number

    @property
    def token(self) -> int:
        """Grows with every claim of the job: give it to outside systems, and have them refuse a smaller one."""
        return self._session.attempt.token

    @property
    def cancelled(self) -> bool:
        """Whether the job was asked to stop. It may still keep what it has done, until its grace period is over."""
        return self._session.cancelled

    def log(self, message: str, /, *, level: str = "info", **fields: Any) -> None:
        """Add a line to the job's log, with a `level` and any fields. It is written within a second, in order.

        Very long lines are cut and marked.
        """
        self._session.log(str(message), level, fields)


class AttemptFacts(JobFacts):
    __slots__ = ()

    @property
    def job_id(self) -> int:
        """The job as the SQL functions know it; people see `ctx.job.id`."""
        return self._session.attempt.job_id

    @property
    def kind(self) -> str:
        """The kind that the job was enqueued under."""
        return self._session.attempt.kind

    @property
    def tenant(self) -> str:
        """Whom the job belongs to."""
        return self._session.attempt.tenant

    @property
    def attempt_id(self) -> UUID:
        """The fence: every write of this attempt names it."""
        return self._session.attempt.attempt_id

    @property
    def parents(self) -> list[Parent]:
        """The jobs that this one waited for (`after=`), with how they ended and what they returned."""
        return [] if self._session.start is None else self._session.start.parents

    @property
    def resume(self) -> Any:
        """What `checkpoint` last kept, by an earlier attempt or by the job that this one retries; None at first."""
        return None if self._session.start is None else self._session.start.checkpoint

    @property
    def credentials(self) -> Credentials:
        """Temporary credentials for the job's `identity`, fetched just before this attempt. Raises InvalidOption."""
        if self._session.credentials is None:
            raise InvalidOption(
                f"job {self.job} has no identity, or the app has no credential provider: enqueue it with identity=, "
                "and give the app one with Fenceline(credentials=…)"
            )
        return self._session.credentials

    @property
    def shutting_down(self) -> bool:
        """Whether the worker is about to stop: no new step begins, all else may end within the grace period."""
        return self._session.shutting_down

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` if the job was asked to stop."""
        self._session.raise_if_cancelled()
