"""Plans at the claim: what a runner must not start because the configuration has changed since it was planned.

A runner's app may lack the snapshot provider of a kind, so the server compares where it knows it. A worker compares
for itself (`context/preparation.py`).
"""

import asyncio
import json
import logging
import re
from typing import Any
from uuid import UUID

from fenceline.client.app_parts import app_parts
from fenceline.client.arguments import to_json
from fenceline.client.handler_parts import handler_parts
from fenceline.database import calls
from fenceline.model.outcome import Outcome
from fenceline.model.public_id import parse_id
from fenceline.model.sealed import MARK
from fenceline.server.routing import ApiRequest

log = logging.getLogger(__name__)

#: Claims are read only where one may have been planned: nearly all have none, and `null` there.
_REQUIRES = re.compile(r'"requires_hash"\s*:\s*"')


async def refuse_stale_plans(request: ApiRequest, attempts: list[str]) -> list[str]:
    """The claimed attempts, as JSON texts, without those that may not start: they have ended, and nothing runs."""
    if all(
        handler_parts(handler).snapshot_provider is None for handler in app_parts(request.server.app).handlers.values()
    ):
        return attempts
    return [text for text in attempts if not _REQUIRES.search(text) or await _may_start(request, json.loads(text))]


async def _may_start(request: ApiRequest, attempt: dict[str, Any]) -> bool:
    job = attempt["job"]
    required = job.get("requires_hash")
    handler = app_parts(request.server.app).handlers.get(job["kind"])
    if required is None or handler is None or handler_parts(handler).snapshot_provider is None or MARK in job["args"]:
        return True
    try:
        args = handler_parts(handler).arguments.decode(json.dumps(job["args"]))
        # It may read files, or ask a service.
        snapshot = await asyncio.to_thread(handler_parts(handler).current_snapshot, args)
        current = await request.database.call(calls.context.snapshot_hash(to_json(snapshot)))
    except Exception as error:
        log.warning("job %s: its snapshot could not be taken at the claim", job["id"], exc_info=True)
        await _end(
            request, attempt, Outcome.FAILED, "snapshot", f"its snapshot could not be taken: {type(error).__name__}"
        )
        return False
    if current == required:
        return True
    message = f"the configuration has changed since it was planned: hash {required} was required, it is {current} now"
    await _end(request, attempt, Outcome.FAILED_FOR_GOOD, "plan_hash_mismatch", message)
    return False


async def _end(request: ApiRequest, attempt: dict[str, Any], outcome: Outcome, code: str, message: str) -> None:
    error = json.dumps({"code": code, "message": message})
    call = calls.attempts.finish_attempt(
        parse_id(attempt["job"]["id"]), UUID(attempt["attempt_id"]), outcome, error=error
    )
    await request.database.call(call)
