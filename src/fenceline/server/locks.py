"""What jobs hold that others may wait for: locks, resource locks, keys."""

from typing import Annotated, Literal

from fastapi import Response
from pydantic import Field

from fenceline.database import calls
from fenceline.database.call import texts_of
from fenceline.model.job import LockRecord
from fenceline.server.routing import ApiRequest, list_response, operation, read_job_id, router
from fenceline.server.schemas import AT
from fenceline.server.views import View, examples, list_of, shows

routes = router("jobs")


@shows(LockRecord)
class JobLockView(View):
    model_config = examples(
        {
            "what": "lock", "tenant": "acme", "namespace": "db", "name": "orders", "job": "01HQ-3KBR-T5GN-8WX",
            "actor": None, "held": True, "since": AT, "holder": None, "holder_actor": None,
        },
        title="JobLock",
    )  # fmt: skip

    what: Annotated[Literal["lock", "resource_lock", "key"], Field(description="`lock`: `ctx.lock` or `app.lock`.")]
    namespace: Annotated[str | None, Field(description="The namespace of a lock.")]
    job: Annotated[str | None, Field(description="The job that has it or waits for it.")]
    actor: Annotated[str | None, Field(description="The actor, if code outside jobs holds it or waits for it.")]
    held: Annotated[bool, Field(description="Whether it is held or waited for.")]
    holder: Annotated[str | None, Field(description="The job that holds what is waited for, if you may see it.")]
    holder_actor: Annotated[str | None, Field(description="Its holder, if that is code outside jobs.")]


JobLockList = list_of(JobLockView)


@routes.get("/v1/jobs/{id}/locks", **operation("jobs:read", "not_found", "invalid", model=JobLockList))
async def list_locks_of_job(request: ApiRequest, id: str) -> Response:
    """What the job holds, and what it waits for, with the holder."""
    found = await request.database.call(texts_of(calls.job_records.describe_locks(read_job_id(id), request.identity)))
    return list_response(found)


@routes.get("/v1/locks", **operation("jobs:read", "invalid", model=JobLockList))
async def list_locks(request: ApiRequest) -> Response:
    """Every lock, resource lock and key in use, each followed by those who wait for it; the first thousand of each."""
    found = await request.database.call(texts_of(calls.job_records.describe_locks(viewer=request.identity)))
    return list_response(found)
