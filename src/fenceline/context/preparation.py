"""What happens between a claim and its handler: fetch what earlier attempts left, compare the plan with today's
configuration, exchange the identity for credentials.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from fenceline.client.app_parts import app_parts
from fenceline.client.arguments import to_json
from fenceline.client.federation import ExchangeRefused
from fenceline.client.handler_parts import handler_parts
from fenceline.context.attempt import Attempt, Start
from fenceline.context.redacted_output import exchanging
from fenceline.context.redaction import Credentials
from fenceline.errors import FencelineError

if TYPE_CHECKING:
    from fenceline.client.handler import Handler
    from fenceline.context.session import Session


class PlanHashMismatch(FencelineError):
    """The configuration is not the planned one; nothing has run."""

    code = "plan_hash_mismatch"


class CredentialsMissing(FencelineError):
    """There are no credentials for the job's identity."""

    code = "credentials"


def is_needed(attempt: Attempt, *, takes_context: bool) -> bool:
    """Whether there is anything to prepare; most attempts have nothing."""
    if attempt.has_any("identity", "requires_hash"):
        return True
    return takes_context and attempt.has_past


async def prepare(session: "Session", handler: "Handler[Any, Any]", *, takes_context: bool) -> None:
    """Raises PlanHashMismatch, CredentialsMissing."""
    attempt = session.attempt
    if not is_needed(attempt, takes_context=takes_context):
        return
    if takes_context and attempt.has_past:
        session.start = Start.from_json(
            await session.api.execute(attempt.job_id, attempt.attempt_id, "attempt_start", {})
        )
    if attempt.details.get("requires_hash") and handler_parts(handler).snapshot_provider is not None:
        await _compare(session, handler, attempt.details["requires_hash"])
    identity = attempt.details.get("identity")
    if identity is not None:
        await _fetch_credentials(session, identity)


async def _compare(session: "Session", handler: "Handler[Any, Any]", required: str) -> None:
    args = handler_parts(handler).arguments.decode(session.attempt.args)
    # It may read files, or ask a service.
    snapshot = await asyncio.to_thread(handler_parts(handler).current_snapshot, args)
    attempt, values = session.attempt, {"snapshot": to_json(snapshot)}
    current = await session.api.execute(attempt.job_id, attempt.attempt_id, "snapshot_hash", values)
    if current != required:
        raise PlanHashMismatch(
            f"the configuration has changed since it was planned: hash {required} was required, it is {current} now"
        )


async def _fetch_credentials(session: "Session", identity: str) -> None:
    provider = None if session.app is None else app_parts(session.app).credential_provider
    if provider is None:
        return  # ctx.credentials says what is missing, if the handler asks for it
    try:
        with exchanging():
            values = await provider.credentials(identity, tenant=session.attempt.tenant, kind=session.attempt.kind)
        credentials = Credentials(identity, values)
    except Exception as error:  # noqa: BLE001 - a provider is user code, and raises what it likes
        # Not the error's own text: it may quote what it was given. Ours does not.
        why = str(error) if isinstance(error, ExchangeRefused) else type(error).__name__
        raise CredentialsMissing(f"no credentials for identity {identity!r}: {why}") from None
    session.use_credentials(credentials)
