"""What a backend must do: carry messages to workers, each of which is the id of a job.

The job tables in PostgreSQL are the only truth. A message makes a worker claim that very job; one that comes twice or
too late claims nothing, and one that is lost is sent again. So a backend may lose, repeat and reorder messages, and may
forget everything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fenceline.errors import FencelineError
from fenceline.model.public_id import format_id


class BackendMisconfigured(FencelineError):
    """There is no such backend, or its settings are wrong."""


class BackendUnavailable(FencelineError):
    """The backend does not answer. Jobs wait in the database, and are sent when it does."""


@dataclass(frozen=True, slots=True)
class Message:
    """A job to bring to a worker. Only `id` has to travel; the rest says in which order, and to whom."""

    job_id: int
    lane: str
    priority: int
    seq: int  # of two with the same priority, the lower comes first

    @property
    def id(self) -> str:
        """The job's public id."""
        return format_id(self.job_id)


class Backend(Protocol):
    """One process's access to a backend. It connects when it needs to; each method may raise BackendUnavailable."""

    @property
    def name(self) -> str:
        """The name by which lanes choose this delivery."""

    @property
    def cannot(self) -> Sequence[str]:
        """What it cannot do, one line each: logged when a worker starts."""

    # To send ---------------------------------------------------------------------------------------------------------

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[str] | None:
        """Send messages; returns the backend's names for them (`backend_job_id`), or None if those are the jobs' public
        ids. A message that is still queued may be sent again, and must not be queued twice.
        """

    async def get_job_metadata(self, backend_job_id: str) -> Mapping[str, Any] | None:
        """What the backend knows about a message, for diagnosis; None: nothing."""

    async def get_job_result(self, backend_job_id: str) -> Any:
        """The result that the backend itself has kept, if it keeps any. The job's result is in the database."""

    # To receive ------------------------------------------------------------------------------------------------------

    async def receive(self, lane: str, limit: int) -> Sequence[int]:
        """Take up to `limit` messages of a lane, the most urgent first; returns their jobs' ids. Does not wait."""

    async def listen(self, wake: Callable[[str | None], None]) -> None:
        """Call `wake` with the lane (None: any) when messages have come, until cancelled; survives outages."""

    async def close(self) -> None: ...


#: Makes a backend. Connections belong to one event loop, so each loop has its own backend.
BackendFactory = Callable[[], Backend]
