"""Ends attempts of runners; where the kind has a finalizer, in one transaction with what that writes.

A runner has no database, so the server runs the finalizer when the runner reports success. It must have been started
with the app for that: otherwise the answer is 503 `finalizer_missing`, and the runner tries again later.
"""

import asyncio
import json
from typing import Any

from fenceline.client.caller import is_connection_failure
from fenceline.client.handler import Handler
from fenceline.context.attempt import Attempt
from fenceline.context.context import Context
from fenceline.context.desk import SqlDesk
from fenceline.context.failure import ending_of
from fenceline.context.sync_context import SyncContext, wait_on
from fenceline.context.transaction import Transaction, TransactionConnection
from fenceline.database import runner_calls
from fenceline.database.calls import Call
from fenceline.database.runner_calls import Finish
from fenceline.errors import DatabaseUnavailable, StaleAttempt
from fenceline.model.identity import Identity
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest


class RunnerTransaction(Transaction):
    """Ends an attempt as its runner said; the result is stored as it came."""

    def __init__(self, context: Context, identity: Identity, end: Finish) -> None:
        super().__init__(context)
        self._identity = identity
        self._end = end

    def _finish(self, own: TransactionConnection) -> Call[str]:  # noqa: ARG002 - the result is the runner's
        call = runner_calls.finish(self._identity, [self._end], finalized=True)
        return Call(call.sql, call.parameters, lambda rows: call.decode(rows)[0])


async def finish_one(request: ApiRequest, end: Finish) -> str:
    """The verdict: accepted, already, stale, forbidden or not_found. Raises Problem `finalizer_missing`."""
    call = runner_calls.finish(request.identity, [end])
    [verdict] = await request.caller.call(call)
    if verdict != "finalizer":
        return verdict
    row = await request.caller.call(runner_calls.live_claim(end.job_id, end.attempt_id))
    if row is not None:
        attempt = Attempt(*row)
        handler = request.server.app.handlers.get(attempt.kind)
        if handler is None or handler.own_finalizer is None:
            raise Problem(
                "finalizer_missing",
                f"kind {attempt.kind!r} has a finalizer, and this server was started without the app that has it: "
                "start it as `fenceline server module:app`",
            )
        try:
            await _finalize(request, end, attempt, handler)
        except StaleAttempt:
            pass  # somebody was quicker, perhaps the same report sent before: see below
        else:
            return "accepted"
    [verdict] = await request.caller.call(call)
    return verdict


async def _finalize(request: ApiRequest, end: Finish, attempt: Attempt, handler: Handler[Any, Any]) -> None:
    """Run the finalizer and end the attempt. What the finalizer raises fails the attempt. Raises StaleAttempt."""
    context = Context(attempt, SqlDesk(request.caller.call), request.server.app)
    try:
        value = handler.arguments.decode_result(None if end.result is None else json.loads(end.result))
        transaction = RunnerTransaction(context, request.identity, end)
        if handler.own_finalizer is not None and handler.own_finalizer.is_async:
            async with transaction.open() as own:
                own.result = value
        else:
            blocking = SyncContext(context, wait_on(asyncio.get_running_loop()))

            def finalize() -> None:
                with transaction.open_blocking(blocking) as own:
                    own.result = value

            await asyncio.to_thread(finalize)
    except StaleAttempt:
        raise
    except Exception as error:
        if is_connection_failure(error):
            raise DatabaseUnavailable(f"the end could not be written: {error}") from error
        failed = ending_of(attempt, error)
        ended = Finish(
            job_id=end.job_id,
            attempt_id=end.attempt_id,
            outcome=failed.outcome,
            error=failed.error,
            delay_seconds=failed.delay,
            ran_seconds=end.ran_seconds,
            metadata=end.metadata,
        )
        [verdict] = await request.caller.call(runner_calls.finish(request.identity, [ended]))
        if verdict != "accepted":
            raise StaleAttempt(f"the attempt of job {attempt.id} is gone") from error
