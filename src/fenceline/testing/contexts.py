"""Contexts that a test passes to a handler: behind each is a real attempt of a real job in the test's database."""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack
from uuid import uuid4

from fenceline.client.app_parts import app_parts
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.handler import Handler
from fenceline.client.handler_parts import handler_parts
from fenceline.context import preparation
from fenceline.context.attempt import Attempt, Start
from fenceline.context.attempt_api import SqlAttemptApi
from fenceline.context.context import Context
from fenceline.context.session import Session
from fenceline.database import calls
from fenceline.errors import WrongStatus
from fenceline.model.public_id import parse_id

if TYPE_CHECKING:
    from fenceline.app import Fenceline

#: Nobody renews the lease, so this is how long a test may take.
LEASE_SECONDS = 3600.0


async def make_session(
    app: "Fenceline",
    kind: str | Handler[..., Any],
    args: Mapping[str, Any] | None = None,
    *,
    attempt: int = 1,
    resume: Any = None,
    cancelled: bool = False,
    **options: Unpack[EnqueueOptions],
) -> Session:
    """Enqueue a job and claim it, as its worker would. Everything that the context writes is in the database."""
    job = await app.enqueue(kind, args, **options)
    claimed = await _claim(app, str(job.id))
    session = Session(replace(claimed, number=attempt), SqlAttemptApi(app_parts(app).database().call), app)
    handler = app_parts(app).handlers.get(claimed.kind)
    if handler is not None:
        await preparation.prepare(session, handler, takes_context=True)
    if resume is not None:
        await Context(session).checkpoint(resume)
        started = await session.api.execute(claimed.job_id, claimed.attempt_id, "attempt_start", {})
        session.start = Start.from_json(started)
    if cancelled:
        session.request_cancel()
    return session


def must_be_async(app: "Fenceline", kind: str | Handler[..., Any]) -> None:
    """Raises TypeError for a `def` handler, which needs a blocking context."""
    handler = app_parts(app).handlers.get(kind) if isinstance(kind, str) else kind
    if handler is not None and not inspect.iscoroutinefunction(handler_parts(handler).function):
        raise TypeError(f"{handler.kind} is a def handler: make its context with fenceline_app.sync.make_context(…)")


async def _claim(app: "Fenceline", job_id: str) -> Attempt:
    """Claim this job, whatever else is queued. Raises WrongStatus if it cannot be claimed now."""
    database = app_parts(app).database()
    record = await app.jobs.get(job_id)
    worker = await database.call(
        calls.workers.register_worker(
            "make_context", lease_seconds=LEASE_SECONDS, kinds=[record.kind], lanes=None, host="", pid=0, version=""
        )
    )
    rows = await database.call(
        calls.attempts.claim_named_jobs(worker, record.lane, [parse_id(job_id)], request_id=uuid4())
    )
    if not rows:
        raise WrongStatus(f"job {job_id} is {record.status} and cannot be run now: `await job.explain()` says why")
    return Attempt(record.lane, *rows[0])
