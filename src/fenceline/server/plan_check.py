"""Refuses claimed jobs that must not start because the configuration has changed since they were planned.

A runner's app may lack the snapshot provider of a kind, so the server compares if it has one. A worker compares by
itself (`context/preparation.py`).
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

#: A claim is parsed only if this matches: in nearly all of them `requires_hash` is null.
_REQUIRES = re.compile(r'"requires_hash"\s*:\s*"')


async def refuse_stale_plans(request: ApiRequest, attempts: list[str]) -> list[str]:
    """The claimed attempts, as JSON texts, without those that must not start: those are ended here."""
    if all(
        handler_parts(handler).snapshot_provider is None for handler in app_parts(request.server.app).handlers.values()
    ):
        return attempts
    return [text for text in attempts if not _REQUIRES.search(text) or await _may_start(request, json.loads(text))]


async def _may_start(request: ApiRequest, attempt: dict[str, Any]) -> bool:
    job = attempt["job"]
    required = job.get("requires_hash")
    handler = request.server.handler(job["kind"])
    if required is None or handler is None or handler.snapshot_provider is None or MARK in job["args"]:
        return True
    try:
        args = handler.arguments.decode(json.dumps(job["args"]))
        # In a thread: it may read files or call a service.
        snapshot = await asyncio.to_thread(handler.current_snapshot, args)
        current = await request.call(calls.context.snapshot_hash(to_json(snapshot)))
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
    await request.call(call)
