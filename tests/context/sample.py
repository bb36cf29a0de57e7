"""Handlers that use the whole context, each as `async def`, as `def`, and isolated: kinds `<name>.<flavour>`.

What they do is written to `public.ran` on connections of their own, so that it stays whatever becomes of the job.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg

from fenceline import Cancel, Context, Fail, Fenceline, Retry, RetryLater, Snooze, SyncContext, WithErrors
from fenceline.client.app_parts import app_parts
from fenceline.errors import Cancelled, StaleAttempt

app = Fenceline()

#: Retried at once.
AGAIN = Retry(max_attempts=3, backoff="fixed", base=0.0, jitter=0.0)
FLAVOURS = ("async", "def", "isolated", "isolated_async")


def register(name: str, in_async: Callable[..., Any], in_def: Callable[..., Any], **options: Any) -> None:
    options = {"retry": AGAIN, **options}
    app.job(kind=f"{name}.async", **options)(in_async)
    app.job(kind=f"{name}.def", **options)(in_def)
    app.job(kind=f"{name}.isolated", isolated=True, **options)(in_def)
    app.job(kind=f"{name}.isolated_async", isolated=True, **options)(in_async)


def ran(what: str, job: str) -> None:
    with psycopg.connect(os.environ["FENCELINE_DSN"], autocommit=True) as connection:
        connection.execute("insert into public.ran (job, what) values (%s, %s)", (str(job), what))


# Telling -------------------------------------------------------------------------------------------------------------


async def tell_async(*, ctx: Context) -> None:
    ctx.log("begun", level="debug", attempt=ctx.attempt)
    await ctx.phase("one")
    for done in range(20):
        await ctx.progress(done, 20, "going", extra=done)
    ctx.log("half", level="warning", message="a field", level_of="nothing")
    async with ctx.phase("two"):
        for done in range(20):
            await ctx.progress(done=done, total=20)
    ctx.log("done")
    if ctx.attempt == 1:
        raise RuntimeError("once more")


def tell_def(*, ctx: SyncContext) -> None:
    ctx.log("begun", level="debug", attempt=ctx.attempt)
    ctx.phase("one")
    for done in range(20):
        ctx.progress(done, 20, "going", extra=done)
    ctx.log("half", level="warning", message="a field", level_of="nothing")
    with ctx.phase("two"):
        for done in range(20):
            ctx.progress(done=done, total=20)
    ctx.log("done")
    if ctx.attempt == 1:
        raise RuntimeError("once more")


register("tell", tell_async, tell_def)


async def build_async(*, ctx: Context) -> WithErrors | str:
    await ctx.items.start("a", "b", "c", "d")
    if ctx.attempt == 1:
        await ctx.items.fail("a", error="of the first attempt")
        raise RuntimeError("once more")
    await ctx.items.complete("a")
    await ctx.items.skip("b", reason="not needed")
    await ctx.items.fail("c", "d", error=ValueError("bad"))
    counts = await ctx.items.complete("d")
    assert counts == {"in_progress": 0, "completed": 2, "skipped": 1, "failed": 1}
    return WithErrors("built", ["by hand"])


def build_def(*, ctx: SyncContext) -> WithErrors | str:
    ctx.items.start("a", "b", "c", "d")
    if ctx.attempt == 1:
        ctx.items.fail("a", error="of the first attempt")
        raise RuntimeError("once more")
    ctx.items.complete("a")
    ctx.items.skip("b", reason="not needed")
    ctx.items.fail("c", "d", error=ValueError("bad"))
    counts = ctx.items.complete("d")
    assert counts == {"in_progress": 0, "completed": 2, "skipped": 1, "failed": 1}
    return WithErrors("built", ["by hand"])


register("build", build_async, build_def)


# Steps ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Page:
    number: int
    at: datetime


async def load_async(job: str, number: int) -> Page:
    return load(job, number)


def load(job: str, number: int) -> Page:
    ran(f"load {number}", job)
    return Page(number, datetime.fromisoformat("2026-03-01T12:00:00+00:00") + timedelta(days=number))


def store(job: str, pages: int) -> int:
    ran("store", job)
    return pages


async def import_async(fail_at: int, *, ctx: Context) -> dict[str, Any]:
    await ctx.list_steps("load", "load", "load", "store")
    pages = []
    for number in range(3):
        if number == fail_at and ctx.attempt == 1 and ctx.job.retry_of is None:
            await ctx.step("load", fail, "broken")
        page = await ctx.step("load", load_async, ctx.job.retry_of or ctx.job.id, number)
        assert page == Page(number, page.at), page
        pages.append(page)
    stored = await ctx.step("store", store, ctx.job.retry_of or ctx.job.id, pages=len(pages))
    return {"stored": stored, "last": pages[-1].at}


def import_def(fail_at: int, *, ctx: SyncContext) -> dict[str, Any]:
    ctx.list_steps("load", "load", "load", "store")
    pages = []
    for number in range(3):
        if number == fail_at and ctx.attempt == 1 and ctx.job.retry_of is None:
            ctx.step("load", fail, "broken")
        page = ctx.step("load", load, ctx.job.retry_of or ctx.job.id, number)
        assert page == Page(number, page.at), page
        pages.append(page)
    stored = ctx.step("store", store, ctx.job.retry_of or ctx.job.id, pages=len(pages))
    return {"stored": stored, "last": pages[-1].at}


def fail(why: str) -> None:
    raise LookupError(why)


register("import", import_async, import_def)


async def change_async(*, ctx: Context) -> None:
    await ctx.step("charge", str, ctx.attempt)
    raise RuntimeError("once more")


def change_def(*, ctx: SyncContext) -> None:
    ctx.step("charge", str, ctx.attempt)
    raise RuntimeError("once more")


register("change", change_async, change_def)


async def resume_async(*, ctx: Context) -> Any:
    if ctx.resume is None:
        try:
            while True:
                await ctx.progress(1)
                time.sleep(0.01)  # noqa: ASYNC251 - a moment
        except Cancelled:
            await ctx.checkpoint({"row": 7})
            raise
    await ctx.checkpoint({"row": ctx.resume["row"] + 1})
    if ctx.attempt == 1:
        raise RuntimeError("once more")
    return ctx.resume


def resume_def(*, ctx: SyncContext) -> Any:
    if ctx.resume is None:
        try:
            while True:
                ctx.progress(1)
                time.sleep(0.01)
        except Cancelled:
            ctx.checkpoint({"row": 7})
            raise
    ctx.checkpoint({"row": ctx.resume["row"] + 1})
    if ctx.attempt == 1:
        raise RuntimeError("once more")
    return ctx.resume


register("resume", resume_async, resume_def)


# Steering ------------------------------------------------------------------------------------------------------------


def steer(how: str, attempt: int, token: int) -> str:
    first = token & 0xFFFF == 1
    match how:
        case "retry_later" if first:
            raise RetryLater("busy", after=timedelta(seconds=0.2))
        case "snooze" if first:
            raise Snooze(0.2)
        case "cancel":
            raise Cancel("no longer wanted")
        case "fail":
            raise Fail("never")
        case "bad_snooze":
            raise Snooze("soon")  # type: ignore[arg-type]  # the mistake that the test is about
    return f"{how} {attempt}"


async def steer_async(how: str, *, ctx: Context) -> str:
    return steer(how, ctx.attempt, ctx.token)


def steer_def(how: str, *, ctx: SyncContext) -> str:
    return steer(how, ctx.attempt, ctx.token)


register("steer", steer_async, steer_def)


# Children ------------------------------------------------------------------------------------------------------------


@app.job(kind="child")
async def child(number: int) -> int:
    return number


async def parent_async(succeeds_at: int = 1, *, ctx: Context) -> list[str]:
    first = await ctx.enqueue("child", {"number": 1})
    second = await ctx.enqueue(child, {"number": 2}, after=[first], labels={"of": "parent"})
    more = await ctx.enqueue_many("child", [{"number": n} for n in (3, 4)], priority=5)
    if ctx.attempt < succeeds_at:
        raise RuntimeError("once more")
    return [first.id, second.id, *(job.id for job in more)]


def parent_def(succeeds_at: int = 1, *, ctx: SyncContext) -> list[str]:
    first = ctx.enqueue("child", {"number": 1})
    second = ctx.enqueue(child, {"number": 2}, after=[first], labels={"of": "parent"})
    more = ctx.enqueue_many("child", [{"number": n} for n in (3, 4)], priority=5)
    if ctx.attempt < succeeds_at:
        raise RuntimeError("once more")
    return [first.id, second.id, *(job.id for job in more)]


register("parent", parent_async, parent_def)


# Transactions --------------------------------------------------------------------------------------------------------


async def pay_async(how: str = "well", *, ctx: Context) -> str:
    ctx.log("before")
    try:
        async with ctx.transaction() as conn:
            await conn.execute("insert into public.paid (job) values ($1)", ctx.job.id)
            await app.enqueue("child", {"number": 9}, connection=conn)
            if how == "raises" and ctx.attempt == 1:
                raise RuntimeError("in the block")
            conn.result = f"paid {ctx.attempt}"
            ctx.log("within")
    finally:
        ctx.log("after")
    try:
        await ctx.progress(1)
    except StaleAttempt as error:
        ran(f"refused: {type(error).__name__}", ctx.job)
    if how == "fails_after":
        raise RuntimeError("too late to matter")
    return "not what counts"


def pay_def(how: str = "well", *, ctx: SyncContext) -> str:
    ctx.log("before")
    try:
        with ctx.transaction() as conn:
            conn.execute("insert into public.paid (job) values (%s)", (ctx.job.id,))
            app.sync.enqueue("child", {"number": 9}, connection=conn)
            if how == "raises" and ctx.attempt == 1:
                raise RuntimeError("in the block")
            conn.result = f"paid {ctx.attempt}"
            ctx.log("within")
    finally:
        ctx.log("after")
    try:
        ctx.progress(1)
    except StaleAttempt as error:
        ran(f"refused: {type(error).__name__}", ctx.job)
    if how == "fails_after":
        raise RuntimeError("too late to matter")
    return "not what counts"


register("pay", pay_async, pay_def)


# Finalizers ----------------------------------------------------------------------------------------------------------


async def publish_async(how: str, *, ctx: Context) -> Any:
    ctx.log("handled")
    if how == "in_transaction":
        async with ctx.transaction() as conn:
            conn.result = {"how": how}
        return None
    return WithErrors({"how": how}, ["a small one"]) if how == "with_errors" else {"how": how}


def publish_def(how: str, *, ctx: SyncContext) -> Any:
    ctx.log("handled")
    if how == "in_transaction":
        with ctx.transaction() as conn:
            conn.result = {"how": how}
        return None
    return WithErrors({"how": how}, ["a small one"]) if how == "with_errors" else {"how": how}


register("publish", publish_async, publish_def)


async def finalize_async(conn: Any, job: Any, result: Any, args: dict[str, Any], ctx: Context) -> None:
    ctx.log("finalized")
    await ctx.progress(7)  # the attempt is not locked: that would wait for this transaction, and this for that
    await conn.execute("insert into public.paid (job) values ($1)", job.id)
    check(result, args, ctx.attempt)


def finalize_def(connection: Any, job: Any, result: Any, args: dict[str, Any], ctx: SyncContext) -> None:
    ctx.log("finalized")
    ctx.progress(7)
    connection.execute("insert into public.paid (job) values (%s)", (job.id,))
    check(result, args, ctx.attempt)


def check(result: Any, args: dict[str, Any], attempt: int) -> None:
    assert result == args, "it is given what the handler returned"
    if args["how"] == "fails" or (args["how"] == "fails_once" and attempt == 1):
        raise LookupError("not published")


for flavour in FLAVOURS:
    app_parts(app).handlers[f"publish.{flavour}"].finalizer(finalize_async if "async" in flavour else finalize_def)


# Waiting -------------------------------------------------------------------------------------------------------------


async def ask_async(*, ctx: Context) -> Any:
    try:
        await ctx.step("ask", ran, "ask", ctx.job)
        await ctx.sleep(0.05)
        answer = await ctx.wait_for("answer")
    except Exception:  # noqa: BLE001 - a wait is no error, whatever a handler catches
        return "caught"
    await ctx.step("thank", ran, "thank", ctx.job)
    try:
        await ctx.wait_for("more", timeout=timedelta(seconds=0.05))
    except TimeoutError:
        return [answer, ctx.attempt]


def ask_def(*, ctx: SyncContext) -> Any:
    try:
        ctx.step("ask", ran, "ask", ctx.job)
        ctx.sleep(0.05)
        answer = ctx.wait_for("answer")
    except Exception:  # noqa: BLE001 - as above
        return "caught"
    ctx.step("thank", ran, "thank", ctx.job)
    try:
        ctx.wait_for("more", timeout=0.05)
    except TimeoutError:
        return [answer, ctx.attempt]


register("ask", ask_async, ask_def)
