"""What clients see: ask for maintenance, and see what became of it. Refusals are Fenceline's own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Response
from pydantic import BaseModel, Field

from fenceline.server.problems import answer_problems
from table_maintenance.actions import Action
from table_maintenance.jobs import KEEP_HOURS, app, submit


@asynccontextmanager
async def lifespan(_web: FastAPI) -> AsyncIterator[None]:
    async with app:
        yield


web = FastAPI(title="Table maintenance", lifespan=lifespan)
answer_problems(web)


class Maintenance(BaseModel):
    actions: Annotated[list[Action], Field(min_length=1)]
    keep_hours: Annotated[float, Field(ge=0)] = KEEP_HOURS


@web.post("/tables/{db}/{table}/maintenance", status_code=202)
def request_maintenance(db: str, table: str, wanted: Maintenance, response: Response) -> dict[str, str]:
    """409 while another job has the table, 503 while the system drains, 404 and 422 for what makes no sense."""
    job = submit(db, table, wanted.actions, wanted.keep_hours)
    response.headers["Location"] = web.url_path_for("show_job", job_id=job.id)
    return {"job_id": job.id, "status": job.status()}


@web.get("/jobs/{job_id}")
async def show_job(job_id: str) -> dict[str, Any]:
    record = await app.jobs.get(job_id)
    steps = await app.jobs.handle(job_id).steps()
    return {
        "job_id": record.id,
        "status": record.status,
        "error": record.error,
        "attempt": record.attempt,
        "worker": record.worker,
        "actions": [{"action": step.name, "status": step.status, "result": step.result} for step in steps],
    }


@web.post("/jobs/{job_id}/cancel", status_code=202)
async def cancel_job(job_id: str, *, force: bool = False) -> dict[str, str]:
    """The action that runs may end, the next does not begin; with `force` the table is free at once."""
    return {"status": await app.jobs.handle(job_id).cancel("asked for by a client", force=force)}
