"""`agent-turn`: somebody said something, the agent answers. `trigger-fire`: a clock or a webhook makes it speak."""

import time

from agent_gateway.analytics import analytics_write
from agent_gateway.app import INSERT_MESSAGE, app
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
        await dispatch(ctx, session_id, text.removeprefix(ASK_OTHERS))
        tools.append("dispatch")
    took = (time.perf_counter() - started) * 1000
    for tool in tools:
        await ctx.enqueue(analytics_write, {"session_id": session_id, "tool": tool, "milliseconds": took})
    reply = f"I remember: {remembered}" if remembered else f"I heard: {text}"
    async with ctx.transaction() as conn:
        await conn.execute(INSERT_MESSAGE, str(ctx.job), session_id, user_id, channel, text, reply)
        conn.result = {"reply": reply}
    return {"reply": reply}


@app.job(kind="trigger-fire")
async def trigger_fire(
    ctx: Context, trigger: str, text: str, *, user_id: str = "system", session_id: str = "", message_id: str = ""
) -> None:
    """One turn for each message, however often it is delivered: while the turn waits, and for a day after."""
    key = f"{trigger}:{user_id}:{message_id or ctx.job}"
    turn = {"user_id": user_id, "session_id": session_id or trigger, "text": text, "channel": trigger}
    await ctx.enqueue(agent_turn, turn, dedupe_key=key, idempotency_key=key)


app.schedule(
    "0 8 * * 1-5", name="standup", kind="trigger-fire", args={"trigger": "cron", "text": "What is planned today?"}
)
