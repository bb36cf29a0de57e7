"""What somebody who watches jobs sees. Frozen values, no I/O."""

from dataclasses import dataclass
from typing import Any, Literal

from fenceline.model.job import JobRecord, LogLine


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """News of a job, as in the streams of the server: what `event` names is there, the rest is None.

    `status`: the job, when anything but its progress has changed. `progress`: its phase and progress. `log`: a line.
    """

    event: Literal["status", "progress", "log"]
    id: str
    job: JobRecord | None = None
    attempt: int | None = None
    phase: str | None = None
    progress: Any = None
    line: LogLine | None = None
