"""A shop in FastAPI, with SQLAlchemy: `DATABASE_URL=postgresql://… uvicorn fastapi_shop:web`.

Its worker runs inside, and Fenceline's server, dashboard included, is mounted at /queue.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from fenceline import Context, Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.problems import answer_problems
from fenceline.server.server_settings import ServerSettings

URL = os.environ["DATABASE_URL"]
queue = Fenceline(URL)
engine = create_async_engine(make_url(URL).set(drivername="postgresql+psycopg"), pool_pre_ping=True)
# Browsers are served under these names; who may do what is a matter of tokens: `fenceline token create`.
server = create_app(ServerSettings(hosts=("testserver",)), queue)


@queue.job(retry=3)
async def send_receipt(ctx: Context, order_id: int) -> str:
    await ctx.progress(1, 2, "looking for the order")
    async with AsyncSession(engine) as session:
        found = await session.execute(text("select item from shop_order where id = :id"), {"id": order_id})
    ctx.log("found", order=order_id)
    return f"receipt for {found.scalar_one()}"


@asynccontextmanager
async def lifespan(_web: FastAPI) -> AsyncIterator[None]:
    async with queue, server.router.lifespan_context(server):  # a mounted app is started by whoever mounts it
        worker = asyncio.create_task(queue.run_worker(grace_seconds=5))
        yield
        worker.cancel()
        await asyncio.wait([worker])
    await engine.dispose()


async def get_session() -> AsyncIterator[AsyncSession]:
    """One transaction per request: committed before the answer is sent, rolled back when the request fails."""
    async with AsyncSession(engine) as session, session.begin():
        yield session


web = FastAPI(lifespan=lifespan)
answer_problems(web)  # 404 for a job that is not there, 503 while the system drains …


@web.post("/orders", status_code=202)
async def order(item: str, session: Annotated[AsyncSession, Depends(get_session, scope="function")]) -> dict[str, str]:
    made = await session.execute(text("insert into shop_order (item) values (:item) returning id"), {"item": item})
    job = await send_receipt.options(connection=session).enqueue(order_id=made.scalar_one())
    if item == "nothing":
        raise HTTPException(422, "there is no such item")
    return {"job": job.id}


@web.get("/jobs/{job_id}")
async def job_status(job_id: str) -> dict[str, object]:
    record = await queue.jobs.get(job_id)
    return {"status": record.status, "result": record.result}


@web.get("/jobs/{job_id}/stream")
async def stream(job_id: str) -> StreamingResponse:
    """Server-sent events: `new EventSource("/jobs/…/stream")` in the page."""
    job = queue.jobs.handle(job_id)
    await job.get()  # if it is not there, that is the answer, and not the end of a stream

    async def events() -> AsyncIterator[str]:
        async for event in job.watch():
            status = event.job.status if event.job else None
            data = {"status": status, "progress": event.progress, "line": event.line and event.line.message}
            yield f"event: {event.event}\ndata: {json.dumps(data)}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


web.mount("/queue", server)
