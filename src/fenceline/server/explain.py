"""Why a job is where it is."""

from typing import Annotated, Any

from fastapi import Response
from pydantic import AwareDatetime, Field

from fenceline.database import calls
from fenceline.database.call import text_of
from fenceline.model.explanation import Explanation, Reason
from fenceline.server.routing import ApiRequest, json_response, operation, read_job_id, router
from fenceline.server.schemas import AT
from fenceline.server.views import View, examples, shows

routes = router("jobs")

_REASON: dict[str, Any] = {
    "code": "lane_drained", "text": "Lane default is drained, by ann: nothing in it is started.", "since": AT,
    "until": None, "details": {"lane": "default", "actor": "ann"}, "commands": ["fenceline lanes resume default"],
}  # fmt: skip


@shows(Reason)
class ReasonView(View):
    model_config = examples(_REASON, title="Reason")

    code: Annotated[str, Field(description="A fixed name, for programs.")]
    until: Annotated[AwareDatetime | None, Field(description="When it ends, if known.")]
    details: Annotated[dict[str, Any], Field(description="Holders, counts, workers; what you may not see is left out.")]
    commands: Annotated[list[str], Field(description="What to type to change it.")]


@shows(Explanation)
class ExplanationView(ReasonView):
    model_config = examples(
        {"id": "01HQ-3KBR-T5GN-8WX", "status": "queued", **_REASON, "also": []},
        title="Explanation",
    )

    also: Annotated[list[ReasonView], Field(description="What would hold the job up next.")]


@routes.get("/v1/jobs/{id}/explain", **operation("jobs:read", "not_found", "invalid", model=ExplanationView))
async def explain(request: ApiRequest, id: str) -> Response:
    """What the job waits for (or does, or how it ended), since when, and what would change that."""
    call = calls.job_records.explain_job(read_job_id(id), request.identity)
    return json_response(await request.database.call(text_of(call)))
