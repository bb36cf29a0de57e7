"""What is served: messages that come in, goals to orchestrate; and Fenceline's server, with triggers and callbacks.

`python -m agent_gateway.gateway PORT`
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import uvicorn
from fastapi import APIRouter, FastAPI
from pydantic import BaseModel

from agent_gateway.app import connection, create_tables
from agent_gateway.jobs import app
from agent_gateway.orchestrate import plan
from agent_gateway.turns import agent_turn
from fenceline.server.asgi_app import create_app
from fenceline.server.problems import answer_problems
from fenceline.server.server_settings import ServerSettings

routes = APIRouter()


class Message(BaseModel):
    user_id: str
    session_id: str
    text: str
    channel: str = "web"
    message_id: str | None = None


class Goal(BaseModel):
    goal: str


class Memory(BaseModel):
    text: str


@routes.post("/v1/messages", status_code=202)
async def receive_message(message: Message) -> dict[str, Any]:
    """A message that has an id is one turn, however often it is sent: while the turn waits, and for a day after."""
    key = f"{message.channel}:{message.user_id}:{message.message_id or uuid4()}"
    turn = message.model_dump(exclude={"message_id"})
    job = await app.enqueue(agent_turn, turn, dedupe_key=key, idempotency_key=key)
    return {"job_id": job.id, "created": job.created}


@routes.post("/v1/orchestrate", status_code=202)
async def orchestrate(goal: Goal) -> dict[str, str]:
    return {"job_id": (await plan.enqueue(goal=goal.goal)).id}


@routes.post("/v1/memories", status_code=201)
async def remember(memory: Memory) -> None:
    async with connection() as conn:
        await conn.execute("insert into gateway.memory (text) values ($1)", memory.text)


@routes.get("/v1/sessions/{session_id:path}")
async def show_session(session_id: str) -> list[dict[str, Any]]:
    async with connection() as conn:
        rows = await conn.fetch(
            "select user_id, channel, text, reply, at from gateway.message where session_id = $1 order by at",
            session_id,
        )
    return [dict(row) for row in rows]


def make_web() -> FastAPI:
    """The routes above, and below them Fenceline's: /v1/jobs, /v1/triggers, /v1/callbacks, the dashboard …"""
    server = create_app(ServerSettings(hosts=("localhost", "127.0.0.1", "testserver")), app)

    @asynccontextmanager
    async def lifespan(_web: FastAPI) -> AsyncIterator[None]:
        async with app, server.router.lifespan_context(server):
            await create_tables()
            yield

    web = FastAPI(title="Agent gateway", lifespan=lifespan)
    answer_problems(web)
    web.include_router(routes)
    web.mount("/", server)
    return web


if __name__ == "__main__":
    uvicorn.run(make_web(), port=int(sys.argv[1]), log_level="warning")
