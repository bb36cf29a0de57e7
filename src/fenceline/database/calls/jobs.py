"""Jobs: one, many, and what people do to them.

`viewer` is who asks over HTTP, and sees and changes only what is in reach. None means somebody with access to the
database itself.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fenceline.database.call import As, Call, Function, function, jsonb, rows_of, statement, value_of
from fenceline.database.decoding import Row, from_json, json_value, nothing, read_record, scalar
from fenceline.errors.sqlstates import SQLSTATES
from fenceline.model.identity import Identity
from fenceline.model.job import JobFilter, JobOutcome, JobPage, JobRecord
from fenceline.model.public_id import format_id, parse_id
from fenceline.model.sealed import seal_json
from fenceline.model.status import Status

#: A page that a program reads has all of each job, and ends early when it gets this large.
MAX_PAGE_BYTES = 32 * 1024 * 1024


def visible_job_id(job_id: int, viewer: Identity) -> Call[int]:
    """The id itself. Raises NotFound if the job is missing, foreign or past its retention."""
    return value_of(_visible(job_id, viewer), lambda rows: int(scalar(rows)), repeatable=True)


def seen_by(viewer: Identity | None, job_id: int) -> int | Function:
    """A job's id as an argument of a call, which raises NotFound if the viewer may not see the job."""
    return job_id if viewer is None else _visible(job_id, viewer)


def _visible(job_id: int, viewer: Identity) -> Function:
    return function("visible_job_id", job_id=job_id, **reach_of(viewer))


def reach_of(viewer: Identity) -> dict[str, Any]:
    return {"tenant": viewer.reach, "created_by": viewer.only_created_by}


def describe_job(
    job_id: int, viewer: Identity | None = None, *, tenant: str | None = None, with_snapshot: bool = False
) -> Call[JobRecord | None]:
    """None if there is no such job (of the tenant). With a viewer, raises NotFound instead."""

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


def page_jobs(which: JobFilter, *, limit: int, cursor: int | None) -> Call[JobPage]:
    """With all of each job, up to `MAX_PAGE_BYTES`."""
    shown = {"fields": ["args", "result"], "most_bytes": MAX_PAGE_BYTES, "most_value": None}
    return _page(which, None, _read_page, limit=limit, cursor=cursor, **shown)


def page_texts(
    which: JobFilter, viewer: Identity, *, limit: int, cursor: int | None, fields: Sequence[str]
) -> Call[tuple[str, str | None]]:
    """The same with the jobs as one JSON array, to be passed on as it is. `fields`: whether args and result are in it;
    long values are cut, and pages end early.
    """
    return _page(which, viewer, _page_texts, limit=limit, cursor=cursor, fields=list(fields))


def _page(which: JobFilter, viewer: Identity | None, decode: Callable[[Sequence[Row]], Any], **shown: Any) -> Call[Any]:
    called = function("page_jobs", **filters(which, viewer), **_later_filters(which, viewer), **shown)
    return rows_of(called, "jobs, next_cursor", decode, repeatable=True)


def _page_texts(rows: Sequence[Row]) -> tuple[str, str | None]:
    jobs, next_cursor = rows[0]
    return jobs, None if next_cursor is None else format_id(next_cursor)


def _read_page(rows: Sequence[Row]) -> JobPage:
    jobs, next_cursor = _page_texts(rows)
    return JobPage(items=[read_record(JobRecord, row) for row in from_json(jobs)], next_cursor=next_cursor)


def filters(which: JobFilter, viewer: Identity | None) -> dict[str, Any]:
    """The arguments of functions that find jobs, within the viewer's reach."""
    tenants = which.tenants
    if viewer is not None and viewer.reach is not None:
        # A foreign tenant is a tenant without jobs.
        tenants = [viewer.reach] if tenants is None or viewer.reach in tenants else []
    if which.created_by is not None and viewer is not None and viewer.only_created_by not in {None, which.created_by}:
        tenants = []
    return {
        "statuses": which.statuses,
        "kinds": which.kinds,
        "lanes": which.lanes,
        "tenants": tenants,
        "labels": jsonb(which.labels or None),
        "created_after": which.created_after,
        "created_before": which.created_before,
    }


def _later_filters(which: JobFilter, viewer: Identity | None) -> dict[str, Any]:
    """What else lists can be filtered by."""
    more: dict[str, Any] = {
        name: value
        for name in ("group", "key", "worker", "phase", "error")
        if (value := getattr(which, name)) is not None
    }
    if which.parent is not None:
        more["parent"] = parse_id(which.parent)
    created_by = which.created_by or (None if viewer is None else viewer.only_created_by)
    return {"created_by": created_by, "more": jsonb(more or None)}


def match_jobs(which: JobFilter, viewer: Identity, *, cursor: int | None) -> Call[tuple[list[int], int | None]]:
    """The ids of one page of matching jobs, newest first, and the cursor of the next page."""

    def decode(rows: Sequence[Row]) -> tuple[list[int], int | None]:
        job_ids, next_cursor = rows[0]
        return list(job_ids), next_cursor

    called = function("match_jobs", **filters(which, viewer), **_later_filters(which, viewer), cursor=cursor)
    return rows_of(called, "job_ids, next_cursor", decode, repeatable=True)


def retry_order(job_ids: list[int]) -> Call[list[int]]:
    """The order in which to retry jobs: those that wait for others come after them."""
    return value_of(function("retry_order", locals()), lambda rows: list(scalar(rows)), repeatable=True)


def outcomes(job_ids: list[int]) -> Call[dict[int, JobOutcome | None]]:
    """How jobs ended, by id; a job that does not exist maps to None, an unfinished one is left out."""
    return rows_of(
        function("outcomes", locals()),
        "job_id, status, result, error, errors",
        lambda rows: {job_id: _outcome(*ended) for job_id, *ended in rows},
        repeatable=True,
    )


def _outcome(status: str | None, result: Any, error: Any, errors: Any) -> JobOutcome | None:
    if status is None:
        return None
    return JobOutcome(status=Status(status), result=from_json(result), error=from_json(error), errors=from_json(errors))


def watch_jobs(job_ids: list[int], seconds: float) -> Call[None]:
    return value_of(function("watch_jobs", locals()), nothing, repeatable=True)


def cancel_job(
    job_id: int, *, actor: str | None, reason: str | None, force: bool, grace_seconds: float | None
) -> Call[Status]:
    return value_of(function("cancel_job", locals()), _status)


def approve_job(job_id: int, *, actor: str | None, reason: str | None) -> Call[Status]:
    return value_of(function("approve_job", locals()), _status)


def reject_job(job_id: int, *, actor: str | None, reason: str | None) -> Call[Status]:
    return value_of(function("reject_job", locals()), _status)


def _status(rows: Sequence[Row]) -> Status:
    return Status(scalar(rows))


def retry_job(job_id: int, *, actor: str | None) -> Call[int]:
    return rows_of(function("retry_job", locals()), "job_id", scalar)


def reprioritise_job(job_id: int, priority: int, *, actor: str | None) -> Call[int]:
    return value_of(function("reprioritise_job", locals()))


def run_job_now(job_id: int, *, actor: str | None, reason: str | None) -> Call[None]:
    return value_of(function("run_job_now", locals()), nothing)


def signal_job(
    job_id: int,
    name: str,
    payload: str | None,
    *,
    actor: str | None,
    request_id: UUID | None,
    viewer: Identity | None = None,
) -> Call[Status]:
    """`payload` is JSON text. With a `request_id`, repeats count once."""
    called = function(
        "signal_job",
        locals(),
        job_id=seen_by(viewer, job_id),
        payload=As("jsonb", payload, seal_json),
        tenant=None if viewer is None else viewer.reach,
    )
    return value_of(called, _status, repeatable=request_id is not None)


def use_callback(hash_: bytes, payload: str | None) -> Call[bool]:
    """Whether the callback exists and was not used before. `payload` is JSON text."""
    return value_of(function("use_callback", hash=hash_, payload=As("jsonb", payload, seal_json)))


def move_job(job_id: int, lane: str, *, actor: str | None, reason: str | None, tenant: str | None = None) -> Call[str]:
    """The lane that it was in."""
    return value_of(function("move_job", locals()))


def delete_job(job_id: int, *, actor: str | None) -> Call[None]:
    return value_of(function("delete_job", locals()), nothing)


def delete_jobs(job_ids: Sequence[int], *, actor: str | None, reason: str | None) -> Call[int]:
    """Delete those that are finished; how many."""
    return value_of(function("delete_jobs", locals()), repeatable=True)  # what is gone is not deleted again


def erase_args(job_id: int, *, actor: str | None, reason: str | None) -> Call[None]:
    return value_of(function("erase_args", locals()), nothing, repeatable=True)


def act_on_job(
    job_id: int,
    verb: str,
    viewer: Identity,
    *,
    reason: str | None = None,
    force: bool = False,
    priority: int | None = None,
) -> Call[str | None]:
    """The job afterwards as JSON text, or the new one for retry; None if it was deleted."""
    return value_of(function("act_on_job", locals(), actor=viewer.actor, **reach_of(viewer)))


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
    called = function("bulk_jobs", locals(), actor=viewer.actor, **reach_of(viewer))
    return rows_of(called, "matched, changed, refused", _read_counts, repeatable=dry_run)


def _read_counts(rows: Sequence[Row]) -> BulkCounts:
    matched, changed, refused = rows[0]
    reasons = {SQLSTATES[state].code: count for state, count in json.loads(refused).items()}
    return BulkCounts(matched, changed, reasons)
