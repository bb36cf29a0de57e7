"""`dispatch-execute` and `dispatch-synthesize`: remote agents are asked, and answer when they can."""

import os
from datetime import timedelta
from typing import Any

import httpx

from agent_gateway.app import INSERT_MESSAGE, app
from fenceline import Context

PATIENCE = timedelta(hours=1)


def agents() -> list[str]:
    return os.environ.get("AGENTS", "").split()


async def dispatch(ctx: Context, session_id: str, question: str) -> None:
    """A tool call: every remote agent is asked, and what they say is put together when all have returned."""
    asked = [await ctx.enqueue(dispatch_execute, {"agent": agent, "question": question}) for agent in agents()]
    task = {"session_id": session_id, "question": question}
    await ctx.enqueue(dispatch_synthesize, task, after={"jobs": asked, "policy": "always"})


async def send(ctx: Context, agent: str, question: str) -> None:
    """The URL is made in the step that hands it over: one question, however often the handler runs."""
    task = {"question": question, "callback": await ctx.callback_url("returned", expires_in=PATIENCE)}
    async with httpx.AsyncClient() as client:
        (await client.post(f"{agent}/tasks", json=task)).raise_for_status()


@app.job(kind="dispatch-execute")
async def dispatch_execute(ctx: Context, agent: str, question: str) -> Any:
    await ctx.step("send", send, ctx, agent, question)
    answer: Any = await ctx.wait_for("returned", timeout=PATIENCE)  # holds no slot meanwhile
    return answer


@app.job(kind="dispatch-synthesize")
async def dispatch_synthesize(ctx: Context, session_id: str, question: str) -> dict[str, Any]:
    """What was heard becomes a message of the session; who did not answer is missing in it."""
    answers = sorted(parent.result["answer"] for parent in ctx.parents if parent.result is not None)
    found = {"question": question, "answers": answers, "missing": len(ctx.parents) - len(answers)}
    async with ctx.transaction() as conn:
        await conn.execute(INSERT_MESSAGE, str(ctx.job), session_id, "agents", "dispatch", question, "; ".join(answers))
        conn.result = found
    return found
