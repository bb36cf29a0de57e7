"""The built-in kind `fenceline.rekey`: encrypts everything that is encrypted again, with the newest key.

It goes through the jobs in the order of their ids, up to its own: later ones have the newest key anyway, once every
program has it. If it is killed, the next attempt goes on where it was.
"""

import json
from typing import TYPE_CHECKING, Any

from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.context.context import Context
from fenceline.database import calls
from fenceline.database.calls.rekey import SealedValue
from fenceline.errors import Fail
from fenceline.model.public_id import format_id, parse_id
from fenceline.model.sealed import Codec, seal_again

if TYPE_CHECKING:
    from fenceline.runtime.database import Database

JOBS_AT_ONCE = 50


def add_to(app: App) -> None:
    """Register the kind with an app that encrypts and has handlers, unless that was done before."""
    parts = app_parts(app)
    if parts.codec is not None and parts.handlers and calls.rekey.KIND not in parts.handlers:

        @app.job(kind=calls.rekey.KIND, lane="system")
        async def rekey_jobs(*, ctx: Context) -> dict[str, int]:
            return await rekey(app, ctx)


async def rekey(app: App, ctx: Context) -> dict[str, int]:
    """Returns how many jobs were looked at, and how many values were encrypted again or could not be decrypted."""
    codec = app_parts(app).codec
    if codec is None:
        raise Fail("the app of this worker has no codec: set $FENCELINE_KEYS, or give it one")
    database, last = app_parts(app).database(), parse_id(str(ctx.job))
    state: dict[str, Any] = ctx.resume or {"after": None, "jobs": 0, "changed": 0, "unreadable": 0}
    if state["after"] is None:
        await _replace(database, codec, await database.call(calls.rekey.sealed_values(None, 0)), state)
        state["after"] = format_id(0)
    while found := await database.call(calls.rekey.sealed_values(parse_id(state["after"]), JOBS_AT_ONCE)):
        await _replace(database, codec, found, state)
        place = max(value.job_id for value in found if value.job_id is not None)
        state["after"] = format_id(place)
        state["jobs"] += len({value.job_id for value in found})
        await ctx.checkpoint(state)
        await ctx.progress(done=state["jobs"], message=f"{state['changed']} values so far")
        if place >= last:
            break
    return {name: state[name] for name in ("jobs", "changed", "unreadable")}


async def _replace(database: "Database", codec: Codec, found: list[SealedValue], state: dict[str, Any]) -> None:
    changes: list[dict[str, Any]] = []
    for value in found:
        if value.value is None:
            continue
        new, unreadable = seal_again(codec, value.value)
        state["unreadable"] += unreadable
        if new != value.value:
            changes.append(
                {
                    "job_id": value.job_id,
                    "source": value.source,
                    "place": value.place and json.loads(value.place),
                    "old": json.loads(value.value),
                    "new": json.loads(new),
                }
            )
    if changes:
        state["changed"] += await database.call(calls.rekey.replace_sealed(changes))
