"""The queue as a whole: its status and audit, the drain, and its settings."""

from fenceline.database.call import Call, Sql, function, records_of, rows_of, statement, value_of
from fenceline.database.decoding import column, nothing, scalar
from fenceline.model.identity import Identity
from fenceline.model.job import Retention, TenantLimit


def schema_version() -> Call[int]:
    return rows_of(function("schema_version"), "number", scalar, repeatable=True)


def server_settings() -> Call[dict[str, str]]:
    """The settings of PostgreSQL that matter most for speed."""
    names = ("server_version", "fsync", "synchronous_commit")
    return Call(
        f"select {', '.join(f'current_setting({name!r})' for name in names)}",
        (),
        lambda rows: dict(zip(names, rows[0], strict=True)),
        repeatable=True,
    )


def fleet_status(tenant: str | None) -> Call[str]:
    """As JSON text."""
    return value_of(function("fleet_status", locals()), repeatable=True)


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
    """The audit of a tenant, within the viewer's reach; each entry as JSON text."""
    if viewer.reach is not None and tenant is not None and tenant != viewer.reach:
        limit = 0  # a foreign tenant is a tenant without events
    return statement(
        "select to_jsonb(e) || jsonb_build_object('id', {}) from {} e",
        function("public_id", id=Sql("e.id")),
        function("list_events", locals(), tenant=viewer.reach or tenant),
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
    return value_of(function("drain_system", locals()), nothing, repeatable=True)


def retention() -> Call[list[Retention]]:
    return records_of(Retention, function("retention"))


def set_retention(seconds: float | None, *, kind: str | None, status: str | None, actor: str | None) -> Call[None]:
    return value_of(function("set_retention", locals()), nothing, repeatable=True)


def tenant_limits() -> Call[list[TenantLimit]]:
    return records_of(TenantLimit, function("tenant_limits"))


def set_tenant_limit(max_jobs: int | None, *, tenant: str | None, actor: str | None) -> Call[None]:
    return value_of(function("set_tenant_limit", locals()), nothing, repeatable=True)


def approval() -> Call[bool]:
    """Whether jobs must be approved by somebody other than the one who enqueued them."""
    return value_of(function("approval"), repeatable=True)


def set_approval(*, by_other: bool, actor: str | None, reason: str | None = None) -> Call[None]:
    return value_of(function("set_approval", locals()), nothing, repeatable=True)
