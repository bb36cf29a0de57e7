"""`agent-turn`: somebody said something, the agent answers. `trigger-fire`: a clock or a webhook makes it speak."""

import time

from agent_gateway.analytics import analytics_write
from agent_gateway.app import app
from agent_gateway.dispatch import dispatch
from agent_gateway.memories import recall
from fenceline import Context

ASK_OTHERS = "ask the others: "


@app.job(kind="agent-turn")
async def agent_turn(ctx: Context, user_id: str, session_id: str, text: str, channel: str) -> dict[str, str]:
    """The message, the reply and the end of the job are one commit; so are the jobs that it makes."""
    started = time.perf_counter()
    remembered = await recall(text)
    tools = ["recall"]
    if text.startswith(ASK_OTHERS):
        await dispatch(ctx, text.removeprefix(ASK_OTHERS))
        tools.append("dispatch")
    took = (time.perf_counter() - started) * 1000
    for tool in tools:
        await ctx.enqueue(analytics_write, {"session_id": session_id, "tool": tool, "milliseconds": took})
    reply = f"I remember: {remembered}" if remembered else f"I heard: {text}"
    async with ctx.transaction() as conn:
        await conn.execute(
            "insert into gateway.message values ($1, $2, $3, $4, $5, $6)",
            *(str(ctx.job), session_id, user_id, channel, text, reply),
        )
        conn.result = {"reply": reply}
    return {"reply": reply}


@app.job(kind="trigger-fire")
async def trigger_fire(
    ctx: Context, trigger: str, text: str, *, user_id: str = "system", session_id: str = "", message_id: str = ""
) -> None:
    """A turn, once for each message: while a turn with the key waits, another delivery of it makes none."""
    turn = {"user_id": user_id, "session_id": session_id or trigger, "text": text, "channel": trigger}
    await ctx.enqueue(agent_turn, turn, dedupe_key=f"{trigger}:{user_id}:{message_id or ctx.job}")


app.schedule(
    "0 8 * * 1-5", name="standup", kind="trigger-fire", args={"trigger": "cron", "text": "What is planned today?"}
)
