"""What clients and admins ask for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI

from docs_hosting.database import app, fetch, load_build, load_projects
from docs_hosting.jobs import build_processing, edition_update
from docs_hosting.services import render_dashboard
from fenceline.server.problems import answer_problems


@asynccontextmanager
async def lifespan(_web: FastAPI) -> AsyncIterator[None]:
    async with app:
        yield


web = FastAPI(title="Documentation", lifespan=lifespan)
answer_problems(web)


@web.post("/projects/{project_id}/builds", status_code=201)
async def create_build(project_id: int, git_ref: str) -> dict[str, int]:
    text = "insert into docs.build (project_id, git_ref) values ($1, $2) returning id"
    return {"build": (await fetch(text, project_id, git_ref))[0]["id"]}


@web.patch("/builds/{build_id}", status_code=202)
async def upload_is_complete(build_id: int) -> dict[str, str]:
    """A client that heard no answer asks again, and gets the same job."""
    project = (await load_build(build_id)).project
    labels = {"project": project.slug, "build": str(build_id)}
    options = build_processing.options(tenant=project.org, labels=labels, idempotency_key=f"build {build_id}")
    return {"job": (await options.enqueue(build_id=build_id)).id}


@web.patch("/editions/{edition_id}", status_code=202)
async def reassign_edition(edition_id: int, build: int) -> dict[str, str]:
    project = (await load_build(build)).project
    options = edition_update.options(tenant=project.org, labels={"project": project.slug})
    return {"job": (await options.enqueue(edition_id=edition_id, build_id=build)).id}


@web.post("/projects/{project_id}/dashboard")
async def render_now(project_id: int) -> None:
    """In the request, under the same locks as jobs."""
    (project,) = await load_projects("p.id = $1", project_id)
    await render_dashboard(project)


@web.get("/queue/jobs/{job_id}")
async def show_job(job_id: str) -> dict[str, Any]:
    """404 when it never was, or is past its retention."""
    phases = await app.jobs.handle(job_id).phases()
    return asdict(await app.jobs.get(job_id)) | {"phases": [asdict(phase) for phase in phases]}
