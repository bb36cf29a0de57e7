"""The operations that look at attempts, events and workers, as `Call`s."""

from collections.abc import Sequence
from typing import Any

from fenceline.database.calls import Call, Row, from_json
from fenceline.model.observed import AttemptRecord, JobEvent, WorkerRecord


def list_attempts(job_id: int) -> Call[list[AttemptRecord]]:
    def decode(rows: Sequence[Row]) -> list[AttemptRecord]:
        return [
            AttemptRecord(
                attempt_id=None if row[0] is None else str(row[0]),
                token=row[1],
                number=row[2],
                worker=row[3],
                claimed_at=row[4],
                started_at=row[5],
                ended_at=row[6],
                outcome=row[7],
                final=row[8],
                error=from_json(row[9]),
                actor=row[10],
                metadata=from_json(row[11]),
            )
            for row in rows
        ]

    return Call(
        "select attempt_id, token, number, worker, claimed_at, started_at, ended_at, outcome, final, error, actor, "
        "metadata from fenceline.list_attempts($1)",
        (job_id,),
        decode,
        repeatable=True,
    )


def job_events(job_id: int) -> Call[list[JobEvent]]:
    return Call(
        "select at, event, actor, reason, details from fenceline.job_events($1)",
        (job_id,),
        lambda rows: [
            JobEvent(at=at, event=event, actor=actor, reason=reason, details=from_json(details))
            for at, event, actor, reason, details in rows
        ],
        repeatable=True,
    )


def list_workers(*, stopped: bool) -> Call[list[WorkerRecord]]:
    def decode(rows: Sequence[Row]) -> list[WorkerRecord]:
        return [
            WorkerRecord(
                id=row[0],
                name=row[1],
                host=row[2],
                pid=row[3],
                version=row[4],
                runner=row[5],
                lanes=_list(row[6]),
                kinds=_list(row[7]),
                labels=from_json(row[8]),
                running=row[9],
                started_at=row[10],
                heartbeat_at=row[11],
                lease_seconds=row[12],
                lease_seconds_left=row[13],
                stopped_at=row[14],
            )
            for row in rows
        ]

    return Call(
        "select id, name, host, pid, version, runner, lanes, kinds, labels, running, started_at, heartbeat_at, "
        "lease_seconds, lease_seconds_left, stopped_at from fenceline.list_workers($1)",
        (stopped,),
        decode,
        repeatable=True,
    )


def lane_rates(seconds: float, tenant: str | None = None) -> Call[dict[str, float]]:
    return Call(
        "select lane, per_second from fenceline.lane_rates($1, $2)",
        (seconds, tenant),
        lambda rows: {lane: rate for lane, rate in rows},  # noqa: C416 - rows are of the driver's own type
        repeatable=True,
    )


def _list(value: Any) -> list[str] | None:
    return None if value is None else list(value)
