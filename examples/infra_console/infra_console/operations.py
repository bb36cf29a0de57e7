"""The eight kinds, as runners know them: `fenceline runner infra_console.operations:app --url …`."""

import asyncio
import os
from contextlib import aclosing
from pathlib import Path
from typing import Any

from fenceline import Context, Fail, Fenceline
from infra_console.engine import AnsibleEngine, Engine, Run
from infra_console.identities import CloudCredentials, as_environment, look_around

app = Fenceline(credentials=CloudCredentials())
engine: Engine = AnsibleEngine(Path(os.environ.get("INFRA_CONSOLE_SITE", ".site")).resolve())

LANE = "infra"
MONTHLY_PRICES = {"cluster": 73.0, "database": 15.0, "argocd": 0.0}

#: Looking costs nothing, so it is tried again. What was changed half-way is looked at by a person, who retries.
look = app.job(lane=LANE, retry=3)
change = app.job(lane=LANE, retry=1)


@look
async def connection_test(ctx: Context, account: str) -> dict[str, Any]:
    return await _look_around(ctx)


@look
async def fetch_resources(ctx: Context, account: str) -> dict[str, Any]:
    return await _look_around(ctx)


@look
async def plan(ctx: Context, spec: str, *, with_cost: bool = True) -> dict[str, Any]:
    resources = await _run(ctx, "site", plan=True)
    cost = sum(MONTHLY_PRICES.get(name, 0.0) for name in resources) if with_cost else None
    return {"changes": [name for name, became in resources.items() if became == "changed"], "monthly_cost": cost}


@change
async def deploy(ctx: Context, spec: str) -> dict[str, Any]:
    if ctx.job.requires_hash is None:
        raise Fail("a deploy takes requires_hash, the job that planned it: plan the spec first")
    resources = await _run(ctx, "site")
    return {"outputs": resources.pop("outputs"), "resources": resources}


@change
async def destroy(ctx: Context, spec: str) -> dict[str, Any]:
    return {"resources": await _run(ctx, "site_destroy")}


@change
async def deploy_worker(ctx: Context, runner: str) -> dict[str, Any]:
    return {"resources": await _run(ctx, "runner")}


@change
async def update_worker(ctx: Context, runner: str) -> dict[str, Any]:
    return {"resources": await _run(ctx, "runner")}


@change
async def destroy_worker(ctx: Context, runner: str) -> dict[str, Any]:
    return {"resources": await _run(ctx, "runner_destroy")}


async def _look_around(ctx: Context) -> dict[str, Any]:
    found = await asyncio.to_thread(look_around, ctx.job.identity or "", ctx.credentials)
    ctx.log("signed in", caller=found["caller"])
    return found


async def _run(ctx: Context, what: str, *, plan: bool = False) -> dict[str, Any]:
    """What became of each resource. It is the state: kept after each, so that a retry goes on with the next."""
    names = engine.resources(what)
    state: dict[str, Any] = dict(ctx.resume or {})
    left = [name for name in names if name not in state]
    if state:
        ctx.log("continuing from the kept state", done=list(state))
    if not left:
        return state
    environment = as_environment(ctx.credentials) if ctx.job.identity else {}
    start_at = left[0] if state else None
    run = Run(what=what, config=ctx.job.snapshot, environment=environment, plan=plan, start_at=start_at)
    async with aclosing(engine.run(run)) as events:
        async for event in events:
            ctx.log(f"{event.resource}: {event.status}", level="error" if event.status == "failed" else "info")
            for line in event.diff.splitlines():
                ctx.log(f"  {line}")
            if event.status == "failed":
                raise Fail(f"{event.resource}: {event.output}")
            state[event.resource] = event.output if event.resource == "outputs" else event.status
            if not plan:
                await ctx.checkpoint(state)
            await ctx.progress(len(state), len(names), event.resource)
    return state
