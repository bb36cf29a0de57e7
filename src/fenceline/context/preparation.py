"""What happens between a claim and the handler: what earlier attempts left is fetched, the plan is compared with the
configuration of today, the identity becomes credentials.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from fenceline.client.arguments import to_json
from fenceline.context.attempt import Attempt, Start
from fenceline.context.secrets import Credentials
from fenceline.errors import FencelineError

if TYPE_CHECKING:
    from fenceline.client.handler import Handler
    from fenceline.context.context import Context


class PlanHashMismatch(FencelineError):  # noqa: N818 - as the exceptions in errors.py
    """The configuration is not the one that was planned: nothing has run."""

    code = "plan_hash_mismatch"


class CredentialsMissing(FencelineError):  # noqa: N818 - as the exceptions in errors.py
    """No credentials could be had for the job's identity."""

    code = "credentials"


def is_needed(attempt: Attempt, *, takes_context: bool) -> bool:
    """Whether an attempt has anything to prepare; most have not."""
    if attempt.more is not None and not attempt.details.keys().isdisjoint({"identity", "requires_hash"}):
        return True
    return takes_context and attempt.has_past


async def prepare(context: "Context", handler: "Handler[Any, Any]", *, takes_context: bool) -> None:
    """Raises PlanHashMismatch, CredentialsMissing."""
    attempt = context.attempt_record
    if not is_needed(attempt, takes_context=takes_context):
        return
    if takes_context and attempt.has_past:
        context.start_with(Start.from_json(await context.desk.start_json(attempt.job_id)))
    if attempt.details.get("requires_hash") and handler.snapshot_provider is not None:
        await _compare(context, handler, attempt.details["requires_hash"])
    identity = attempt.details.get("identity")
    if identity is not None:
        await _fetch_credentials(context, identity)


async def _compare(context: "Context", handler: "Handler[Any, Any]", required: str) -> None:
    args = handler.arguments.decode(context.attempt_record.args)
    snapshot = await asyncio.to_thread(handler.current_snapshot, args)  # it may read files, or ask a service
    current = await context.desk.snapshot_hash(to_json(snapshot))
    if current != required:
        raise PlanHashMismatch(
            f"the configuration has changed since it was planned: hash {required} was required, it is {current} now"
        )


async def _fetch_credentials(context: "Context", identity: str) -> None:
    provider = None if context.app is None else context.app.credential_provider
    if provider is None:
        return  # ctx.credentials says what is missing, if the handler asks for it
    try:
        credentials = Credentials(
            identity, await provider.credentials(identity, tenant=context.tenant, kind=context.kind)
        )
    except Exception as error:  # noqa: BLE001 - a provider is user code, and raises what it likes
        # Not the error's own text: it may quote what it was given.
        raise CredentialsMissing(f"no credentials for identity {identity!r}: {type(error).__name__}") from None
    context.use_credentials(credentials)
