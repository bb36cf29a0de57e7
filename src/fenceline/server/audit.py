"""The audit log: every action of an operator with actor, reason, and the state before and after."""

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import AwareDatetime
from pydantic_core import from_json

from fenceline.database import calls
from fenceline.database.call import page_of
from fenceline.server.filters import Cursor, Limit, read_cursor
from fenceline.server.routing import ApiRequest, list_response, operation, router
from fenceline.server.schemas import AT, ID
from fenceline.server.views import View, examples, list_of

routes = router("audit")

Text = Annotated[str | None, Query()]


class EventView(View):
    model_config = examples(
        {
            "id": ID, "at": AT, "actor": "ann", "action": "job.cancel", "subject": ID, "tenant": "default",
            "reason": "not needed any more", "before": {"status": "queued"}, "after": {"status": "cancelled"},
        },
        title="Event",
    )  # fmt: skip

    id: str
    at: AwareDatetime
    actor: str | None
    action: str
    subject: str | None
    tenant: str | None
    reason: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@routes.get("/v1/admin/audit", **operation("audit:read", model=list_of(EventView)))
async def audit(  # noqa: PLR0917 - FastAPI passes them by name
    request: ApiRequest,
    subject: Annotated[str | None, Query(description='A job id, a lane, "system", "token 7", "role auditor".')] = None,
    actor: Text = None,
    action: Annotated[str | None, Query(description='Like "job.cancel" or "lane.change".')] = None,
    tenant: Text = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Actions of operators, newest first. A page has at most about 4 MiB, and may end before `limit`."""
    call = calls.system.list_events(
        request.identity,
        subject=subject,
        actor=actor,
        action=action,
        tenant=tenant,
        limit=limit,
        cursor=read_cursor(cursor),
    )
    found, following = await request.call(page_of(call))
    is_last = following is None and len(found) < limit
    return list_response(found, None if is_last else from_json(found[-1])["id"])
