"""How a worker runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: How many times a lease is renewed before it would end.
BEATS_PER_LEASE = 4
#: The share of the lease after which handlers must stop when it could not be renewed.
LEASE_MARGIN = 0.75
#: Jobs that a process holds for batches, at most: two of the largest.
MAX_TOGETHER = 2000
MAX_SECONDS = 1_000_000_000
#: As the database has it (`register_worker`).
MIN_LEASE_SECONDS, MAX_LEASE_SECONDS = 0.1, 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """`fenceline worker` flags and `app.run_worker()` options.

    concurrency: async handlers at a time per process; threads: blocking handlers at a time per process;
    isolated: processes for isolated handlers, per process; transactions: `ctx.transaction()` blocks at a time per
    process, each on a connection, beside the two that a process has anyway. The fleet-wide limits are the lanes' slots,
    in the database.
    """

    lanes: tuple[str, ...] | None = None  # None: all
    processes: int = 1
    grace_seconds: float = 30.0
    lease_seconds: float = 30.0
    concurrency: int = 100
    threads: int = 10
    isolated: int = 2
    transactions: int = 1
    batch: int = 500
    name: str | None = None
    labels: dict[str, str] | None = None  # jobs can be addressed to workers that have them
    log_format: str = "text"  # of worker processes: text or json
    log_level: str | None = None  # of worker processes; None: info, but without jobs that succeeded
    log_jobs: bool = False  # whether worker processes log what handlers write with `ctx.log`
    metrics: bool = False  # count for metrics

    def __post_init__(self) -> None:
        for what in ("processes", "concurrency", "threads", "isolated", "transactions", "batch"):
            if getattr(self, what) < 1:
                raise ValueError(f"{what} {getattr(self, what)} is out of range: use 1 or more")
        if self.log_format not in ("text", "json"):
            raise ValueError(f"log_format {self.log_format!r} is unknown: use text or json")
        if self.log_level not in (None, "debug", "info", "warning", "error"):
            raise ValueError(f"log_level {self.log_level!r} is unknown: use debug, info, warning or error")
        if not 0 <= self.grace_seconds <= MAX_SECONDS:  # NaN is neither
            raise ValueError(f"grace {self.grace_seconds} is out of range: use 0 to {MAX_SECONDS} seconds")
        if not MIN_LEASE_SECONDS <= self.lease_seconds <= MAX_LEASE_SECONDS:
            raise ValueError(
                f"lease {self.lease_seconds} is out of range: use {MIN_LEASE_SECONDS} to {MAX_LEASE_SECONDS} seconds"
            )

    @property
    def most_at_once(self) -> int:
        """How many handlers can run in a process at a time, with some to spare."""
        return self.concurrency + self.threads + self.isolated + MAX_TOGETHER + 64

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "WorkerSettings":
        lanes = given["lanes"]
        return cls(**{**given, "lanes": None if lanes is None else tuple(lanes)})
