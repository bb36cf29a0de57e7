"""`analytics-write`: tool executions, many rows in one statement, each job its own."""

from dataclasses import dataclass

from agent_gateway.app import app
from fenceline import BatchContext, BatchItem


@dataclass
class ToolEvent:
    session_id: str
    tool: str
    milliseconds: float = 0.0


@app.job(kind="analytics-write", batch=200, batch_wait=0.5)
async def analytics_write(ctx: BatchContext, jobs: list[BatchItem[ToolEvent]]) -> None:
    """The rows and the ends of the jobs are one commit, so that no event is written twice."""
    rows = []
    for item in jobs:
        if item.args.milliseconds < 0:
            item.fail("time does not run backwards")  # this one alone
        else:
            rows.append((item.id, item.args.session_id, item.args.tool, item.args.milliseconds))
    async with ctx.transaction() as conn:
        await conn.executemany("insert into gateway.tool_event values ($1, $2, $3, $4)", rows)
