"""The application that test_identity.py runs in worker processes: every handler tries to let the secret out."""

import asyncio
import base64
import json
import logging
import os
import re
import sys
import threading
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from fenceline import Context, Fenceline, Retry, SyncContext, WithErrors

#: Taken hold of before there was any secret, as libraries for logging do.
EARLY = sys.stdout
ONCE = Retry(max_attempts=1)
LONG = 3_000
if "LIBRARY_LOG" in os.environ:
    logging.getLogger("library").addHandler(logging.FileHandler(os.environ["LIBRARY_LOG"]))


class Vault:
    """What a secret store would do: the secrets are in a file that only the worker knows."""

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> dict[str, Any]:  # noqa: ARG002 - as asked
        secrets: dict[str, Any] = json.loads(Path(os.environ["VAULT"]).read_text())  # noqa: ASYNC240 - small
        if identity not in secrets:
            raise LookupError(f"refused, and this message quotes {secrets}")
        if identity == "odd":
            return "no mapping"  # type: ignore[return-value]  # on purpose
        return {**secrets[identity], "raw": secrets[identity]["token"].encode()}


app = Fenceline(credentials=Vault())


@app.job(retry=ONCE)
async def leak(ctx: Context) -> Any:
    credentials = ctx.credentials
    token = credentials["token"]
    assert token.startswith("s3cr3t")
    ctx.log(f"token {token}", token=token, nested={"list": [token, {token: token}]}, raw=credentials["raw"])
    ctx.log(str(credentials))
    logging.getLogger("library").warning("using %s", token)
    logging.getLogger("library").error("with %s", {"credentials": dict(credentials)})
    print(credentials, token, dict(credentials))
    print("to stderr", token, file=sys.stderr)
    sys.stdout.write(f"{json.dumps({'token': token})}\n")
    thread = threading.Thread(target=print, args=("from a thread", token))
    thread.start()
    thread.join()
    await ctx.phase(f"with {token}")
    await ctx.progress(done=1, message=token, more={token: [token]})
    await ctx.progress(done=2, message=token)  # is written later, with the next report
    await ctx.step("login", lambda: {"session": token})
    try:
        await ctx.step("broken", fail, token)
    except RuntimeError:
        traceback.print_exc()
    await ctx.items.start("page")
    await ctx.items.fail("page", error=f"denied for {token}")
    await ctx.items.skip(token, reason=token)
    await ctx.checkpoint({"token": token, "json": json.dumps({"token": token})})
    await ctx.enqueue("child", {"token": token}, labels={"token": token})
    async with ctx.lock("edition", token):
        await ctx.guard_newer(token, 1)
    return WithErrors({"token": token, "text": f"a{token}b", "json": json.dumps([token])}, [token, {"e": token}])


@app.job(retry=ONCE)
def leak_blocking(ctx: SyncContext) -> str:
    token = ctx.credentials["token"]
    print(token)
    ctx.log(token)
    ctx.progress(message=token)
    ctx.step("login", lambda: token)
    ctx.checkpoint(token)
    return str(token)


@app.job(retry=ONCE, isolated=True)
async def leak_isolated(ctx: Context) -> str:
    token = ctx.credentials["token"]
    print(token)
    logging.getLogger("library").warning("using %s", token)
    ctx.log(token, token=token)
    await ctx.progress(message=token)
    await ctx.progress(message=token)
    await ctx.checkpoint(token)
    return str(token)


@app.job(retry=ONCE)
async def leak_encoded(ctx: Context) -> None:
    """Beside others: what they print must not come between the parts of a secret."""
    token = ctx.credentials["token"]
    shout(token)
    for symbol in token:
        for stream in (sys.stdout, sys.stderr):
            stream.write(symbol)
            stream.flush()
        await asyncio.sleep(0.001)
    print()


@app.job(retry=ONCE)
def leak_encoded_blocking(ctx: SyncContext) -> None:
    shout(ctx.credentials["token"])


@app.job(retry=ONCE, isolated=True)
def leak_encoded_isolated(ctx: SyncContext) -> None:
    shout(ctx.credentials["token"])


@app.job(retry=ONCE)
async def leak_error(ctx: Context) -> None:
    token = ctx.credentials["token"]
    # Long enough that a cut would go through the middle of one.
    raise RuntimeError("".join(f"{token}{number}," for number in range(LONG)))


@app.job(retry=ONCE, isolated=True)
def leak_error_isolated(ctx: SyncContext) -> None:
    raise RuntimeError(f"cannot log in with {ctx.credentials['token']!r}")


@app.job(retry=ONCE)
async def leak_result(ctx: Context) -> Any:
    return dict(ctx.credentials)


@app.job(retry=ONCE)
async def leak_transaction(ctx: Context) -> Any:
    async with ctx.transaction() as conn:
        conn.result = {"token": ctx.credentials["token"]}


@app.job(retry=ONCE)
async def need(ctx: Context) -> str:
    await asyncio.sleep(0)
    return base64.b64encode(ctx.credentials["token"].encode()).decode()


@app.job()
async def child(token: str) -> str:
    return token


def forms(token: str) -> list[str]:
    """What somebody may make of a secret, alone and as a part of something."""
    found = [token]
    for before in ("", "u:", "user:", "x"):
        text = f"{before}{token}{before[::-1]}".encode()
        for whole in (text, json.dumps({before: token}).encode()):
            encoded = base64.b64encode(whole).decode()
            found += [encoded, encoded.rstrip("="), base64.urlsafe_b64encode(whole).decode()]
            found += [base64.encodebytes(whole).decode(), whole.hex(), whole.hex().upper()]
        quoted = [quote(text), quote(text, safe=""), quote(text, safe="!'()*"), quote_plus(text)]
        found += quoted + [re.sub("%..", lambda code: code[0].lower(), text) for text in quoted]
    return found


def shout(token: str) -> None:
    library = logging.getLogger("library")
    for form in forms(token):
        print(form)
        sys.stderr.writelines([form, "\n"])
        EARLY.write(f"{form}\n")
        library.warning("with %s", form)
        for start in range(0, len(form), 5):
            sys.stdout.write(form[start : start + 5])
            sys.stdout.flush()
        print(flush=True)
    try:
        fail(token)
    except RuntimeError:
        library.exception("cannot log in")
        traceback.print_exc()


def fail(token: str) -> None:
    raise RuntimeError("x" * 1_990 + token)
