"""Ends attempts of runners; if the kind has a finalizer, in one transaction with the finalizer's writes.

A runner has no database, so the server runs the finalizer when the runner reports success. For that it must have been
started with the app; otherwise it answers 503 `finalizer_missing`, and the runner tries again later.
"""

import asyncio
import json
from dataclasses import replace

from fenceline.client.handler_parts import HandlerParts
from fenceline.context.attempt import Attempt
from fenceline.context.attempt_api import SqlAttemptApi
from fenceline.context.context import Context
from fenceline.context.failure import ending_of
from fenceline.context.session import Session
from fenceline.context.sync_context import SyncContext, wait_on
from fenceline.context.transaction import Transaction, TransactionConnection
from fenceline.database import calls, failures
from fenceline.database.call import Call
from fenceline.database.calls.attempts import RunnerEnding
from fenceline.errors import DatabaseUnavailable, StaleAttempt
from fenceline.model.identity import Identity
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest


class RunnerTransaction(Transaction):
    """Ends an attempt as its runner said; the result is stored as it came."""

    def __init__(self, session: Session, identity: Identity, ending: RunnerEnding) -> None:
        super().__init__(session, Context(session))
        self._identity = identity
        self._ending = ending

    def _finish(self, own: TransactionConnection) -> Call[str]:  # noqa: ARG002 - the result is the runner's
        call = calls.attempts.finish_as_runner(self._identity, [self._ending], finalized=True)
        return Call(call.sql, call.parameters, lambda rows: call.decode(rows)[0], seals=call.seals)


async def finish_one(request: ApiRequest, ending: RunnerEnding) -> str:
    """The verdict: accepted, already, stale, forbidden or not_found. Raises Problem `finalizer_missing`."""
    call = calls.attempts.finish_as_runner(request.identity, [ending])
    [verdict] = await request.call(call)
    if verdict != "finalizer":
        return verdict
    row = await request.call(calls.attempts.live_claim(ending.job_id, ending.attempt_id))
    if row is not None:
        attempt = Attempt(*row)
        handler = request.server.handler(attempt.kind)
        if handler is None or handler.finalizer is None:
            raise Problem(
                "finalizer_missing",
                f"kind {attempt.kind!r} has a finalizer, and this server was started without the app that has it: "
                "start it as `fenceline server module:app`",
            )
        try:
            await _finalize(request, ending, attempt, handler)
        except StaleAttempt:
            pass  # something else ended it first, perhaps an earlier copy of this report: ask again below
        else:
            return "accepted"
    [verdict] = await request.call(call)
    return verdict


async def _finalize(request: ApiRequest, ending: RunnerEnding, attempt: Attempt, handler: HandlerParts) -> None:
    """Run the finalizer and end the attempt; an exception in the finalizer fails it. Raises StaleAttempt."""
    session = Session(attempt, SqlAttemptApi(request.database.call), request.server.app)
    try:
        value = handler.arguments.decode_result(None if ending.result is None else json.loads(ending.result))
        await RunnerTransaction(session, request.identity, ending).finish_with(
            value, SyncContext, wait_on(asyncio.get_running_loop())
        )
    except StaleAttempt:
        raise
    except Exception as error:
        if failures.is_lost(error) or failures.is_passing(error):
            raise DatabaseUnavailable(f"the end could not be written: {error}") from error
        failed = ending_of(attempt, error)
        ended = replace(
            ending, outcome=failed.outcome, result=None, error=failed.error, errors=None, delay_seconds=failed.delay
        )
        [verdict] = await request.call(calls.attempts.finish_as_runner(request.identity, [ended]))
        if verdict != "accepted":
            raise StaleAttempt(f"the attempt of job {attempt.id} is gone") from error
