"""Lanes that a backend delivers: which they are, and the messages that are to be sent for their jobs."""

from collections.abc import Sequence

from fenceline.database.call import Call, function, rows_of, value_of
from fenceline.database.decoding import Row, nothing, scalar


def declare_delivery(lanes: Sequence[str], delivery: str) -> Call[None]:
    """Have `delivery` deliver the lanes of which nobody has said anything else."""
    return value_of(function("declare_delivery", lanes=list(lanes), delivery=delivery), nothing, repeatable=True)


def lane_deliveries() -> Call[dict[str, str]]:
    """The lanes that a backend delivers, and which."""
    return rows_of(function("lane_deliveries"), "lane, delivery", dict, repeatable=True)


def take_messages(
    delivery: str,
    lanes: Sequence[str] | None = None,
    *,
    worker_id: int | None = None,
    wait_seconds: float | None = None,
) -> Call[list[Row]]:
    """What is to be sent now: rows of job id, lane, priority and seq. They count as sent."""
    called = function(
        "take_messages",
        delivery=delivery,
        lanes=None if lanes is None else list(lanes),
        worker_id=worker_id,
        wait_seconds=wait_seconds,
    )
    return rows_of(called, "job_id, lane, priority, seq", list, repeatable=True)  # what was not sent is sent later


def name_messages(job_ids: Sequence[int], names: Sequence[str]) -> Call[None]:
    called = function("name_messages", job_ids=list(job_ids), backend_job_ids=list(names))
    return value_of(called, nothing, repeatable=True)


def queued_lane(job_id: int) -> Call[str | None]:
    """The lane that a job waits in; None: it is claimed, gone, or not claimable."""
    return value_of(function("queued_lane", job_id=job_id), scalar, repeatable=True)
