"""How a worker runs."""

from dataclasses import dataclass, field
from typing import Any

from fenceline.worker.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """`fenceline worker` flags and `app.run_worker()` options.

    concurrency: async handlers at a time per process; threads: blocking handlers at a time per process;
    isolated: processes for isolated handlers, per process. The fleet-wide limits are the lanes' slots, in the database.
    """

    lanes: tuple[str, ...] | None = None  # None: all
    processes: int = 1
    grace_seconds: float = 30.0
    lease_seconds: float = 30.0
    concurrency: int = 100
    threads: int = 10
    isolated: int = 2
    batch: int = 500
    name: str | None = None
    log_format: str = "text"  # of worker processes: text or json
    metrics: bool = False  # count for metrics

    def __post_init__(self) -> None:
        for what in ("processes", "concurrency", "threads", "isolated", "batch"):
            if getattr(self, what) < 1:
                raise ValueError(f"{what} {getattr(self, what)} is out of range: use 1 or more")
        if self.log_format not in ("text", "json"):
            raise ValueError(f"log_format {self.log_format!r} is unknown: use text or json")
        if self.grace_seconds < 0 or self.lease_seconds <= 0:
            raise ValueError("grace must be 0 or more seconds, lease more than 0")

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Counters:
    """What a worker has done, for logs and metrics."""

    claimed: int = 0
    stale: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    tally: Tally | None = None  # by kind, where metrics are wanted
