"""`orchestrator-plan`, `orchestrator-subtask`, `orchestrator-synthesize`: a goal is cut up, worked on, put together."""

import re
from typing import Any

from agent_gateway.app import app
from fenceline import Context, Fail


@app.job(kind="orchestrator-plan")
async def plan(ctx: Context, goal: str) -> list[str]:
    """The subtasks and what follows them are made when the plan ends, all of them or none."""
    tasks = [task.strip() for task in re.split(r"[;\n]", goal) if task.strip()]
    if not tasks:
        raise Fail("there is nothing to do")
    subtasks = await ctx.enqueue_many(subtask, [{"task": task} for task in tasks])
    await ctx.enqueue(synthesize, {"goal": goal}, after={"jobs": subtasks, "policy": "always"})
    return tasks


@app.job(kind="orchestrator-subtask")
async def subtask(ctx: Context, task: str) -> str:
    if "impossible" in task:
        raise Fail(f"cannot be done: {task}")
    ctx.log("done", task=task)
    return f"{task}: done"


@app.job(kind="orchestrator-synthesize")
async def synthesize(ctx: Context, goal: str) -> dict[str, Any]:
    """Runs whatever became of the subtasks, and sees it."""
    failed = [parent.error["message"] for parent in ctx.parents if parent.error is not None]
    return {"goal": goal, "done": [parent.result for parent in ctx.parents if parent.error is None], "failed": failed}
