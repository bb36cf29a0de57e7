"""What a backend has to do: carry messages, each of which is the id of a job, to workers.

The job tables in PostgreSQL are the only truth. A message makes a worker claim that very job; one that comes twice, or
too late, is dropped there, and one that is lost is sent again. So a backend may lose, repeat and reorder messages, and
may forget everything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fenceline.errors import FencelineError
from fenceline.model.public_id import format_id


class BackendMisconfigured(FencelineError):
    """There is no such backend, or it cannot work as it is set up."""


class BackendUnavailable(FencelineError):
    """The backend does not answer now. Jobs wait in the database, and are sent when it does."""


@dataclass(frozen=True, slots=True)
class Message:
    """A job that is to be brought to a worker. Only `id` need travel; the rest says in which order, and to whom."""

    job_id: int
    lane: str
    priority: int
    seq: int  # of two with the same priority, the lower comes first

    @property
    def id(self) -> str:
        """The job's public id."""
        return format_id(self.job_id)


class Backend(Protocol):
    """One process's way to a backend. Connections are made when they are needed; each method may raise
    BackendUnavailable.
    """

    @property
    def name(self) -> str:
        """The delivery that lanes name."""
        ...

    @property
    def cannot(self) -> Sequence[str]:
        """What it cannot do, one line each: said when a worker starts."""
        ...

    # Who sends -------------------------------------------------------------------------------------------------------

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[str] | None:
        """Send messages; the names that the backend gave them (`backend_job_id`), None: the jobs' public ids.

        One that is still under way may come again, and must not be there twice.
        """
        ...

    async def get_job_metadata(self, backend_job_id: str) -> Mapping[str, Any] | None:
        """What the backend knows of a message, for diagnosis; None: nothing."""
        ...

    async def get_job_result(self, backend_job_id: str) -> Any:
        """What the backend itself has kept of a run, if it keeps anything. The job's result is in the database."""
        ...

    # Who receives ----------------------------------------------------------------------------------------------------

    async def receive(self, lane: str, limit: int) -> Sequence[int]:
        """Take up to `limit` messages of a lane, the most urgent first; the ids of their jobs. Does not wait."""
        ...

    async def listen(self, wake: Callable[[str | None], None]) -> None:
        """Call `wake` with the lane (None: any) when messages have come, until cancelled, also while the backend is
        away.
        """
        ...

    async def close(self) -> None: ...


#: Makes a backend: connections belong to one event loop, so each has a backend of its own.
BackendFactory = Callable[[], Backend]
