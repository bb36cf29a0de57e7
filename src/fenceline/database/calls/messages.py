"""Lanes that a backend delivers, and the messages to send for their jobs."""

from collections.abc import Sequence

from fenceline.database.call import Call, function, rows_of, value_of
from fenceline.database.decoding import Row, nothing, scalar


def declare_delivery(lanes: Sequence[str], delivery: str) -> Call[None]:
    """Have `delivery` deliver those of the lanes that have no delivery yet."""
    return value_of(function("declare_delivery", locals()), nothing, repeatable=True)


def lane_deliveries() -> Call[dict[str, str]]:
    """The lanes that a backend delivers, and which backend."""
    return rows_of(function("lane_deliveries"), "lane, delivery", dict, repeatable=True)


def take_messages(
    delivery: str,
    lanes: Sequence[str] | None = None,
    *,
    worker_id: int | None = None,
    wait_seconds: float | None = None,
) -> Call[list[Row]]:
    """What to send now: rows of job id, lane, priority and seq. They count as sent."""
    called = function("take_messages", locals())
    return rows_of(called, "job_id, lane, priority, seq", list, repeatable=True)  # what was not sent is sent later


def name_messages(job_ids: Sequence[int], backend_job_ids: Sequence[str]) -> Call[None]:
    return value_of(function("name_messages", locals()), nothing, repeatable=True)


def queued_lane(job_id: int) -> Call[str | None]:
    """The lane that a job waits in; None if it is claimed, gone or not claimable."""
    return value_of(function("queued_lane", locals()), scalar, repeatable=True)
