"""The queue as a whole: its status and audit, the drain, and the settings that operators give it."""

from fenceline.database.call import Call, Sql, function, rows_of, statement, value_of
from fenceline.database.decoding import column, nothing, records, scalar
from fenceline.model.identity import Identity
from fenceline.model.job import Retention, TenantLimit


def schema_version() -> Call[int]:
    return rows_of(function("schema_version"), "number", scalar, repeatable=True)


def server_settings() -> Call[dict[str, str]]:
    """The settings of PostgreSQL that rates depend on most."""
    names = ("server_version", "fsync", "synchronous_commit")
    return Call(
        f"select {', '.join(f'current_setting({name!r})' for name in names)}",
        (),
        lambda rows: dict(zip(names, rows[0], strict=True)),
        repeatable=True,
    )


def fleet_status(tenant: str | None) -> Call[str]:
    """As JSON text."""
    return value_of(function("fleet_status", tenant=tenant), repeatable=True)


def list_events(
    viewer: Identity,
    *,
    subject: str | None,
    actor: str | None,
    action: str | None,
    tenant: str | None,
    limit: int,
    cursor: int | None,
) -> Call[list[str]]:
    """The audit, each entry as JSON text; of the tenant, as far as the viewer reaches."""
    if viewer.reach is not None and tenant is not None and tenant != viewer.reach:
        limit = 0  # a foreign tenant is a tenant without events
    called = function(
        "list_events",
        subject=subject,
        limit=limit,
        cursor=cursor,
        tenant=viewer.reach or tenant,
        actor=actor,
        action=action,
    )
    return statement(
        "select to_jsonb(e) || jsonb_build_object('id', {}) from {} e",
        function("public_id", id=Sql("e.id")),
        called,
        decode=column,
        repeatable=True,
    )


def drain_system(
    draining: bool,  # noqa: FBT001 - the state itself
    *,
    actor: str | None,
    reason: str | None,
    actor_tenant: str | None = None,
) -> Call[None]:
    called = function("drain_system", draining=draining, actor=actor, reason=reason, actor_tenant=actor_tenant)
    return value_of(called, nothing, repeatable=True)


def retention() -> Call[list[Retention]]:
    return rows_of(function("retention"), "to_jsonb(r)", records(Retention), repeatable=True)


def set_retention(seconds: float | None, *, kind: str | None, status: str | None, actor: str | None) -> Call[None]:
    called = function("set_retention", seconds=seconds, kind=kind, status=status, actor=actor)
    return value_of(called, nothing, repeatable=True)


def tenant_limits() -> Call[list[TenantLimit]]:
    return rows_of(function("tenant_limits"), "to_jsonb(r)", records(TenantLimit), repeatable=True)


def set_tenant_limit(max_jobs: int | None, *, tenant: str | None, actor: str | None) -> Call[None]:
    called = function("set_tenant_limit", max_jobs=max_jobs, tenant=tenant, actor=actor)
    return value_of(called, nothing, repeatable=True)


def approval() -> Call[bool]:
    """Whether jobs must be approved by somebody else than the one who enqueued them."""
    return value_of(function("approval"), repeatable=True)


def set_approval(*, by_other: bool, actor: str | None, reason: str | None = None) -> Call[None]:
    called = function("set_approval", by_other=by_other, actor=actor, reason=reason)
    return value_of(called, nothing, repeatable=True)
