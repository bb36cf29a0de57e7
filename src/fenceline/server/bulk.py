"""One action on many jobs, page by page; a dry run does the same and rolls it back."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import Response
from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from fenceline.database import calls
from fenceline.model.job import JobFilter
from fenceline.model.public_id import InvalidId, parse_id
from fenceline.server.filters import FilterBody
from fenceline.server.job_actions import refuse_bound
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, operation, router, value_response
from fenceline.server.schemas import Body
from fenceline.server.views import View, examples

routes = router("jobs")

PAGE = 1000  # jobs of one transaction
Action = Literal["cancel", "retry", "approve", "reprioritise"]
#: What an action needs besides jobs:read: the permission of the same action on one job.
PERMISSIONS: dict[Action, str] = {
    "cancel": "jobs:cancel",
    "retry": "jobs:enqueue",
    "approve": "jobs:approve",
    "reprioritise": "jobs:manage",
}


class BulkBody(Body):
    """Either `ids` or a `filter` with at least one condition; `priority` for reprioritise, and only there."""

    model_config = examples({"action": "cancel", "filter": {"kind": "ingest", "status": "queued"}, "dry_run": True})

    action: Action
    filter: FilterBody | None = None
    ids: Annotated[list[StrictStr], Field(max_length=1000)] | None = None
    dry_run: StrictBool = False
    reason: Annotated[StrictStr, Field(max_length=2000)] | None = None
    force: StrictBool = False
    priority: Annotated[StrictInt, Field(ge=-32768, le=32767)] | None = None

    @model_validator(mode="after")
    def _check(self) -> "BulkBody":
        if (self.filter is None) == (self.ids is None):
            raise ValueError("give either filter or ids")
        if self.filter is not None and not self.filter.model_dump(exclude_none=True):
            raise ValueError("filter: give at least one condition")
        if (self.action == "reprioritise") != (self.priority is not None):
            raise ValueError("priority: give it with the action reprioritise, and only there")
        return self


class BulkView(View):
    """For a dry run: what would have happened. `reasons` says why jobs were not changed, and how many."""

    model_config = examples(
        {
            "action": "cancel", "dry_run": True, "matched": 12, "changed": 11, "refused": 1,
            "reasons": {"wrong_status": 1},
        },
        title="Bulk",
    )  # fmt: skip

    action: Action
    dry_run: bool
    matched: int
    changed: int
    refused: int
    reasons: dict[str, int]


@routes.post(
    "/v1/jobs/bulk",
    **operation(
        "jobs:read", "draining",
        model=BulkView, extra={"x-permission-by-action": dict(PERMISSIONS)},
    ),
)  # fmt: skip
async def bulk(request: ApiRequest, body: BulkBody) -> Response:
    """Apply one action to many jobs. Each succeeds or is refused on its own; the answer counts them.

    It starts with the newest job at the time of the call. A retry starts with the oldest, retries a job after those of
    the same call that it waits for, and does not touch the jobs that it creates.
    """
    permission = PERMISSIONS[body.action]
    if not request.identity.may(permission):
        raise Problem("forbidden", f"role {request.identity.role!r} does not have the permission {permission}")
    if body.action == "retry":
        refuse_bound(request)
    job_ids, unknown = _read_ids(body.ids)
    filters = JobFilter() if body.filter is None else body.filter.to_filter()
    matched, changed, reasons = unknown, 0, Counter({"not_found": unknown} if unknown else {})
    if body.action == "retry" and job_ids is None:
        found = [job_id async for page in _matching(request, filters) for job_id in page]
        job_ids = await request.call(calls.jobs.retry_order(found))  # of all of them, not of each page
    # A dry run of retries is one call: each call rolls back what the next would have seen.
    size = max(PAGE, len(job_ids or ())) if body.dry_run else PAGE
    pages = _matching(request, filters) if job_ids is None else _slices(job_ids, size)
    options = body.model_dump(include={"reason", "force", "priority", "dry_run"})
    async for page in pages:
        counts = await request.call(calls.jobs.bulk_jobs(body.action, request.identity, job_ids=page, **options))
        matched += counts.matched
        changed += counts.changed
        reasons.update(counts.reasons)
    answer = {
        "action": body.action,
        "dry_run": body.dry_run,
        "matched": matched,
        "changed": changed,
        "refused": matched - changed,
        "reasons": dict(reasons),
    }
    return value_response(answer)


async def _matching(request: ApiRequest, filters: JobFilter) -> AsyncIterator[list[int]]:
    """The ids of all matching jobs, newest first. An empty page is not necessarily the last."""
    cursor: int | None = None
    while True:
        page, cursor = await request.call(calls.jobs.match_jobs(filters, request.identity, cursor=cursor))
        if page:
            yield page
        if cursor is None:
            return


async def _slices(job_ids: list[int], size: int) -> AsyncIterator[list[int]]:
    for start in range(0, len(job_ids), size):
        yield job_ids[start : start + size]


def _read_ids(ids: list[str] | None) -> tuple[list[int] | None, int]:
    """The ids without repeats, and how many are malformed: those count as missing."""
    if ids is None:
        return None, 0
    found: dict[int, None] = {}
    unknown = 0
    for text in ids:
        try:
            found[parse_id(text)] = None
        except InvalidId:
            unknown += 1
    return list(found), unknown
