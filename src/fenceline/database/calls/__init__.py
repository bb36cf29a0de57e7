"""The operations of the state machine by noun, each a function that makes a `Call`, named as the SQL function it calls:
`calls.jobs.cancel_job(…)`.

Every SQL function is named in one place of this package; `tests/database/test_calls.py` compares them with the schema.
"""

from fenceline.database.calls import (
    attempts,
    context,
    enqueue,
    job_records,
    jobs,
    lanes,
    locks,
    messages,
    rekey,
    schedules,
    stats,
    streams,
    system,
    tokens,
    upkeep,
    webhooks,
    workers,
)

__all__ = [
    "attempts",
    "context",
    "enqueue",
    "job_records",
    "jobs",
    "lanes",
    "locks",
    "messages",
    "rekey",
    "schedules",
    "stats",
    "streams",
    "system",
    "tokens",
    "upkeep",
    "webhooks",
    "workers",
]
