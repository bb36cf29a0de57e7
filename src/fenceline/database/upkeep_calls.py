"""Retention, limits of tenants, and what operators do by hand: prune, sweep, erase."""

from fenceline.database.calls import Call, nothing, scalar
from fenceline.model.job import Retention, TenantLimit


def retention() -> Call[list[Retention]]:
    return Call(
        "select kind, status, seconds, said_by from fenceline.retention()",
        (),
        lambda rows: [Retention(kind=r[0], status=r[1], seconds=r[2], said_by=r[3]) for r in rows],
        repeatable=True,
    )


def set_retention(seconds: float | None, *, kind: str | None, status: str | None, actor: str | None) -> Call[None]:
    return Call(
        "select fenceline.set_retention($1, $2, $3, $4)", (seconds, kind, status, actor), nothing, repeatable=True
    )


def tenant_limits() -> Call[list[TenantLimit]]:
    return Call(
        "select tenant, max_jobs, jobs from fenceline.tenant_limits()",
        (),
        lambda rows: [TenantLimit(tenant=r[0], max_jobs=r[1], jobs=r[2]) for r in rows],
        repeatable=True,
    )


def set_tenant_limit(max_jobs: int | None, *, tenant: str | None, actor: str | None) -> Call[None]:
    return Call("select fenceline.set_tenant_limit($1, $2, $3)", (max_jobs, tenant, actor), nothing, repeatable=True)


def prune(limit: int) -> Call[int]:
    return Call("select fenceline.prune($1)", (limit,), scalar, repeatable=True)


def sweep() -> Call[int]:
    return Call("select fenceline.sweep()", (), scalar, repeatable=True)


def erase_args(job_id: int, *, actor: str | None, reason: str | None) -> Call[None]:
    return Call("select fenceline.erase_args($1, $2, $3)", (job_id, actor, reason), nothing, repeatable=True)
