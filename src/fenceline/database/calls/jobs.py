"""Jobs: one, many, and what is done to them by people.

`viewer` is who asks over HTTP: sees and changes only what is in reach. None: whoever may use the database itself.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fenceline.database.call import As, Call, Function, function, rows_of, statement, value_of
from fenceline.database.decoding import Row, from_json, json_value, nothing, read_record, scalar
from fenceline.errors import SQLSTATES
from fenceline.model.identity import Identity
from fenceline.model.job import JobFilter, JobOutcome, JobPage, JobRecord
from fenceline.model.public_id import format_id, parse_id
from fenceline.model.sealed import seal_json
from fenceline.model.status import Status

#: Of a page that a program reads: all of each job, unless the page gets as large as this.
MAX_PAGE_BYTES = 32 * 1024 * 1024


def visible_job_id(job_id: int, viewer: Identity) -> Call[int]:
    """The id itself. Raises NotFound for what is missing, foreign or past its retention."""
    return value_of(_visible(job_id, viewer), lambda rows: int(scalar(rows)), repeatable=True)


def seen_by(viewer: Identity | None, job_id: int) -> int | Function:
    """A job's id as an argument, for a call that raises NotFound where the viewer may not see it."""
    return job_id if viewer is None else _visible(job_id, viewer)


def _visible(job_id: int, viewer: Identity) -> Function:
    return function("visible_job_id", job_id=job_id, tenant=viewer.reach, created_by=viewer.only_created_by)


def describe_job(
    job_id: int, viewer: Identity | None = None, *, tenant: str | None = None, with_snapshot: bool = False
) -> Call[JobRecord | None]:
    """None: there is no such job (of the tenant). With a viewer, raises NotFound instead."""

    def decode(rows: Sequence[Row]) -> JobRecord | None:
        found = json_value(rows)
        return None if found is None else read_record(JobRecord, found)

    called = function("describe_job", job_id=seen_by(viewer, job_id), tenant=tenant)
    if not with_snapshot:
        return value_of(called, decode, repeatable=True)
    return statement(
        "select {} || jsonb_build_object('snapshot', {})", called, _snapshot(job_id), decode=decode, repeatable=True
    )


def job_snapshot(job_id: int) -> Call[Any]:
    return statement("select cast({} as text)", _snapshot(job_id), decode=json_value, repeatable=True)


def _snapshot(job_id: int) -> Function:
    return function("job_snapshot", job_id=job_id)


def page_jobs(
    which: JobFilter,
    viewer: Identity | None = None,
    *,
    limit: int,
    cursor: int | None,
    fields: Sequence[str] | None = None,
) -> Call[JobPage]:
    """`fields`: of args and result, which are left out else; long values are cut, and pages end early. None: all."""
    return _page(which, viewer, _read_page, limit=limit, cursor=cursor, fields=fields)


def page_texts(
    which: JobFilter, viewer: Identity, *, limit: int, cursor: int | None, fields: Sequence[str]
) -> Call[tuple[str, str | None]]:
    """The same with the jobs as one JSON array, to be passed on as it is."""
    return _page(which, viewer, _page_texts, limit=limit, cursor=cursor, fields=fields)


def _page(
    which: JobFilter,
    viewer: Identity | None,
    decode: Callable[[Sequence[Row]], Any],
    *,
    limit: int,
    cursor: int | None,
    fields: Sequence[str] | None,
) -> Call[Any]:
    shown = (
        {"fields": ["args", "result"], "most_bytes": MAX_PAGE_BYTES, "most_value": None}
        if fields is None
        else {"fields": list(fields)}
    )
    called = function(
        "page_jobs", **filters(which, viewer), **_later_filters(which, viewer), limit=limit, cursor=cursor, **shown
    )
    return rows_of(called, "jobs, next_cursor", decode, repeatable=True)


def _page_texts(rows: Sequence[Row]) -> tuple[str, str | None]:
    jobs, next_cursor = rows[0]
    return jobs, None if next_cursor is None else format_id(next_cursor)


def _read_page(rows: Sequence[Row]) -> JobPage:
    jobs, next_cursor = _page_texts(rows)
    return JobPage(items=[read_record(JobRecord, row) for row in from_json(jobs)], next_cursor=next_cursor)


def filters(which: JobFilter, viewer: Identity | None) -> dict[str, Any]:
    """The arguments of whatever finds jobs, within the reach of who asks."""
    tenants = which.tenants
    if viewer is not None and viewer.reach is not None:
        # A foreign tenant is a tenant without jobs.
        tenants = [viewer.reach] if tenants is None or viewer.reach in tenants else []
    if which.created_by is not None and viewer is not None and viewer.only_created_by not in {None, which.created_by}:
        tenants = []
    return {
        "statuses": _list(which.statuses),
        "kinds": _list(which.kinds),
        "lanes": _list(which.lanes),
        "tenants": _list(tenants),
        "labels": As("jsonb", json.dumps(dict(which.labels)) if which.labels else None),
        "created_after": which.created_after,
        "created_before": which.created_before,
    }


def _later_filters(which: JobFilter, viewer: Identity | None) -> dict[str, Any]:
    """What lists can be filtered by beyond that."""
    more = {
        "parent": None if which.parent is None else parse_id(which.parent),
        "group": which.group,
        "key": which.key,
        "worker": which.worker,
        "phase": which.phase,
        "error": which.error,
    }
    given = {name: value for name, value in more.items() if value is not None}
    created_by = which.created_by or (None if viewer is None else viewer.only_created_by)
    return {"created_by": created_by, "more": As("jsonb", json.dumps(given) if given else None)}


def _creator(viewer: Identity | None) -> dict[str, Any]:
    return {"created_by": None if viewer is None else viewer.only_created_by}


def _list(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def match_jobs(which: JobFilter, viewer: Identity, *, cursor: int | None) -> Call[tuple[list[int], int | None]]:
    """The ids of one page of matching jobs, newest first, and the cursor of the next page."""

    def decode(rows: Sequence[Row]) -> tuple[list[int], int | None]:
        job_ids, next_cursor = rows[0]
        return list(job_ids), next_cursor

    called = function("match_jobs", **filters(which, viewer), **_later_filters(which, viewer), cursor=cursor)
    return rows_of(called, "job_ids, next_cursor", decode, repeatable=True)


def retry_order(job_ids: list[int]) -> Call[list[int]]:
    """The order in which to retry jobs: what waits for others after them."""
    return value_of(function("retry_order", job_ids=job_ids), lambda rows: list(scalar(rows)), repeatable=True)


def outcomes(job_ids: list[int]) -> Call[dict[int, JobOutcome | None]]:
    """How jobs ended, by id; a job that does not exist maps to None, one that goes on is left out."""

    def decode(rows: Sequence[Row]) -> dict[int, JobOutcome | None]:
        return {
            job_id: None
            if status is None
            else JobOutcome(
                status=Status(status),
                result=from_json(result),
                error=from_json(error),
                errors=from_json(errors),
            )
            for job_id, status, result, error, errors in rows
        }

    return rows_of(
        function("outcomes", job_ids=job_ids), "job_id, status, result, error, errors", decode, repeatable=True
    )


def watch_jobs(job_ids: list[int], seconds: float) -> Call[None]:
    return value_of(function("watch_jobs", job_ids=job_ids, seconds=seconds), nothing, repeatable=True)


def cancel_job(
    job_id: int, *, actor: str | None, reason: str | None, force: bool, grace_seconds: float | None
) -> Call[Status]:
    called = function("cancel_job", job_id=job_id, actor=actor, reason=reason, force=force, grace_seconds=grace_seconds)
    return value_of(called, _status)


def approve_job(job_id: int, *, actor: str | None, reason: str | None) -> Call[Status]:
    return value_of(function("approve_job", job_id=job_id, actor=actor, reason=reason), _status)


def reject_job(job_id: int, *, actor: str | None, reason: str | None) -> Call[Status]:
    return value_of(function("reject_job", job_id=job_id, actor=actor, reason=reason), _status)


def _status(rows: Sequence[Row]) -> Status:
    return Status(scalar(rows))


def retry_job(job_id: int, *, actor: str | None) -> Call[int]:
    return rows_of(function("retry_job", job_id=job_id, actor=actor), "job_id", scalar)


def reprioritise_job(job_id: int, priority: int, *, actor: str | None) -> Call[int]:
    return value_of(function("reprioritise_job", job_id=job_id, priority=priority, actor=actor))


def run_job_now(job_id: int, *, actor: str | None, reason: str | None) -> Call[None]:
    return value_of(function("run_job_now", job_id=job_id, actor=actor, reason=reason), nothing)


def signal_job(
    job_id: int,
    name: str,
    payload: str | None,
    *,
    actor: str | None,
    request_id: UUID | None,
    viewer: Identity | None = None,
) -> Call[Status]:
    """`payload` is JSON text. With a `request_id` the same again counts once."""
    called = function(
        "signal_job",
        job_id=seen_by(viewer, job_id),
        name=name,
        payload=As("jsonb", payload, seal_json),
        actor=actor,
        tenant=None if viewer is None else viewer.reach,
        request_id=request_id,
    )
    return value_of(called, _status, repeatable=request_id is not None)


def use_callback(hash_: bytes, payload: str | None) -> Call[bool]:
    """Whether there was one to be used. `payload` is JSON text."""
    return value_of(function("use_callback", hash=hash_, payload=As("jsonb", payload, seal_json)))


def move_job(job_id: int, lane: str, *, actor: str | None, reason: str | None, tenant: str | None = None) -> Call[str]:
    """The lane that it was in."""
    return value_of(function("move_job", job_id=job_id, lane=lane, actor=actor, reason=reason, tenant=tenant))


def delete_job(job_id: int, *, actor: str | None) -> Call[None]:
    return value_of(function("delete_job", job_id=job_id, actor=actor), nothing)


def delete_jobs(job_ids: Sequence[int], *, actor: str | None, reason: str | None) -> Call[int]:
    """Delete those that are finished, and say how many there were."""
    called = function("delete_jobs", job_ids=list(job_ids), actor=actor, reason=reason)
    return value_of(called, repeatable=True)  # what is gone is not deleted again


def erase_args(job_id: int, *, actor: str | None, reason: str | None) -> Call[None]:
    return value_of(function("erase_args", job_id=job_id, actor=actor, reason=reason), nothing, repeatable=True)


def act_on_job(
    job_id: int,
    verb: str,
    viewer: Identity,
    *,
    reason: str | None = None,
    force: bool = False,
    priority: int | None = None,
) -> Call[str | None]:
    """The job afterwards as JSON text, the new one for retry; None when it was deleted."""
    called = function(
        "act_on_job",
        job_id=job_id,
        verb=verb,
        actor=viewer.actor,
        tenant=viewer.reach,
        **_creator(viewer),
        reason=reason,
        force=force,
        priority=priority,
    )
    return value_of(called)


@dataclass(frozen=True, slots=True)
class BulkCounts:
    """One page of a bulk verb: how many jobs there were, how many were changed, and why the others were not."""

    matched: int
    changed: int
    reasons: Mapping[str, int]


def bulk_jobs(
    verb: str,
    viewer: Identity,
    *,
    reason: str | None,
    force: bool,
    priority: int | None,
    dry_run: bool,
    job_ids: list[int],
) -> Call[BulkCounts]:
    def decode(rows: Sequence[Row]) -> BulkCounts:
        matched, changed, refused = rows[0]
        reasons = {SQLSTATES[state].code: count for state, count in json.loads(refused).items()}
        return BulkCounts(matched, changed, reasons)

    called = function(
        "bulk_jobs",
        verb=verb,
        actor=viewer.actor,
        tenant=viewer.reach,
        **_creator(viewer),
        reason=reason,
        force=force,
        priority=priority,
        dry_run=dry_run,
        job_ids=job_ids,
    )
    return rows_of(called, "matched, changed, refused", decode, repeatable=dry_run)
