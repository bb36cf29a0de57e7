"""`dispatch-execute` and `dispatch-synthesize`: remote agents are asked, and answer when they can."""

import os
from datetime import timedelta
from typing import Any

import httpx

from agent_gateway.app import app
from fenceline import Context

PATIENCE = timedelta(hours=1)


def agents() -> list[str]:
    return os.environ.get("AGENTS", "").split()


async def dispatch(ctx: Context, question: str) -> None:
    """A tool call: every remote agent is asked, and what they say is put together when all have returned."""
    asked = [await ctx.enqueue(dispatch_execute, {"agent": agent, "question": question}) for agent in agents()]
    await ctx.enqueue(dispatch_synthesize, {"question": question}, after={"jobs": asked, "policy": "always"})


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
async def dispatch_synthesize(ctx: Context, question: str) -> dict[str, Any]:
    answers = [parent.result["answer"] for parent in ctx.parents if parent.result is not None]
    return {"question": question, "answers": sorted(answers), "missing": len(ctx.parents) - len(answers)}
