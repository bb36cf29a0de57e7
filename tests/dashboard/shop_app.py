"""The application whose worker runs beside the browser: what a shop does, at the pace that the args say."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from fenceline import Cancelled, Context, Fenceline, Retry
from fenceline.model.with_errors import WithErrors

app = Fenceline()


@app.job(kind="catalogue.import", lane="interactive", timeout=600)
async def catalogue_import(
    ctx: Context, source: str, rows: int = 240, pause: float = 0.0, gate: str | None = None
) -> dict[str, Any]:
    """`gate`: a file that it waits for before the prices."""
    ctx.log("reading", source=source)
    async with ctx.phase("inventory"):
        await ctx.progress(done=rows, total=rows, message="every row counted")
        await ctx.checkpoint({"inventory": rows, "source": source})
    async with ctx.phase("images"):
        for name in ("front", "back", "detail", "lid"):
            await ctx.items.start(name)
        await ctx.items.complete("front")
        await ctx.items.skip("lid", reason="unchanged")
        await ctx.items.fail("detail", error="the file is cut off")
        await asyncio.sleep(pause)
        while gate is not None and not Path(gate).exists():  # noqa: ASYNC240, ASYNC110 - a look at a file, in a test
            await asyncio.sleep(0.02)
        await ctx.items.complete("back")
    async with ctx.phase("prices"):
        for done in range(0, rows + 1, 40):
            ctx.log(f"prices of {done} rows written", level="warning" if done == 120 else "info", done=done)
            await ctx.progress(done=done, total=rows)
            await asyncio.sleep(pause / 6)
    return {"rows": rows, "source": source}


@app.job(kind="order.ship", retry=Retry(max_attempts=3, backoff="fixed", base=0.1))
async def order_ship(ctx: Context, order: str, seconds: float = 0.0) -> str:
    await ctx.step("reserve", _reserve, order)
    await ctx.step("label", _label, order)
    await asyncio.sleep(seconds)
    return f"{order} is on its way"


async def _reserve(order: str) -> dict[str, str]:
    return {"order": order, "shelf": "B-12"}


async def _label(order: str) -> dict[str, str]:
    return {"label": f"DHL-{order}"}


@app.job(kind="payment.capture", retry=Retry(max_attempts=2, backoff="fixed", base=0.1))
async def payment_capture(ctx: Context, order: str, fails: int = 0) -> str:
    ctx.log("asking the bank", order=order)
    if ctx.attempt <= fails:
        raise ConnectionError("the bank does not answer: connection reset by peer")
    return "captured"


@app.job(kind="report.sales", lane="maintenance")
async def report_sales(ctx: Context, month: str, seconds: float = 0.0) -> WithErrors:
    await asyncio.sleep(seconds)
    return WithErrors({"month": month, "orders": 1841}, [{"store": "Lyon", "error": "no figures yet"}])


@app.job(kind="mail.send")
async def mail_send(to: str) -> str:
    return f"sent to {to}"


@app.job(kind="catalogue.copy", retry=Retry(max_attempts=2, backoff="fixed", base=0.1))
async def catalogue_copy(ctx: Context, rows: int = 2000) -> int:
    row = ctx.resume["row"] if ctx.resume else 0
    await ctx.checkpoint({"row": row})
    try:
        await asyncio.sleep(rows / 20)
    except asyncio.CancelledError:
        with contextlib.suppress(Cancelled):
            ctx.raise_if_cancelled()
        await ctx.checkpoint({"row": row + 1})  # refused where the attempt is gone
        raise
    return rows


@app.job(kind="stock.count")
async def stock_count(ctx: Context, shelf: str, seconds: float = 0.0) -> None:
    async with ctx.lock("shelf", shelf):
        await asyncio.sleep(seconds)
        await ctx.enqueue("mail.send", {"to": "buyer"})


@app.job(kind="order.return")
async def order_return(ctx: Context, order: str) -> dict[str, Any]:
    parcel = await ctx.wait_for("parcel-came-back")
    return {"order": order, "refund": parcel["refund"]}


@app.job(kind="long.wait")
async def long_wait(ctx: Context, seconds: float = 3600.0) -> None:
    """Until it is cancelled."""
    ctx.log("waiting")
    for _ in range(int(seconds * 20)):
        await asyncio.sleep(0.05)
        ctx.raise_if_cancelled()
