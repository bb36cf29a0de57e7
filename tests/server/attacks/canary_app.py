"""The application of test_canaries.py: its handler lets out everything it has, wherever it can."""

import logging
import os
import sys
from typing import Any

from fenceline import Context, Fenceline, Retry
from fenceline.credentials import StaticCredentials

app = Fenceline(credentials=StaticCredentials({"deployer": {"token": os.environ.get("CANARY_IDENTITY", "")}}))


@app.job(retry=Retry(max_attempts=1))
async def carry(ctx: Context, args: str, raises: bool = False) -> Any:  # noqa: FBT001, FBT002 - an argument of a job
    token = ctx.credentials["token"]
    ctx.log(f"with {token}", token=token)
    print(token)
    print(token, file=sys.stderr)
    logging.getLogger("library").error("with %s", token)
    await ctx.progress(message=token)
    if raises:
        raise RuntimeError(f"{token} and {args}")
    return {"token": token, "args": args}
