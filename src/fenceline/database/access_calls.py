"""Tokens and roles, as `Call`s."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fenceline.database.calls import Call, Row, nothing, scalar
from fenceline.model.identity import Identity


def _object(rows: Sequence[Row]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(scalar(rows))
    return value


def _objects(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [json.loads(row[0]) for row in rows]


def use_token(token_hash: bytes) -> Call[Identity | None]:
    def decode(rows: Sequence[Row]) -> Identity | None:
        if not rows:
            return None
        token_id, actor, role, tenant, permissions, own_jobs, all_tenants = rows[0]
        return Identity(
            token_id=token_id,
            actor=actor,
            role=role,
            tenant=tenant,
            permissions=frozenset(permissions),
            own_jobs=own_jobs,
            all_tenants=all_tenants,
        )

    return Call(
        "select id, actor, role, tenant, permissions, own_jobs, all_tenants from fenceline.use_token($1)",
        (token_hash,),
        decode,
        repeatable=True,
    )


def create_token(
    token_hash: bytes,
    *,
    role: str,
    tenant: str | None,
    name: str | None,
    expires_at: datetime | None,
    actor: str | None,
    granter: Identity | None = None,
) -> Call[dict[str, Any]]:
    """`granter`: who asks for it over HTTP; None: whoever may write to the database itself."""
    return Call(
        "select fenceline.create_token($1, $2, $3, $4, $5, $6, $7, $8)",
        (
            token_hash,
            role,
            tenant,
            name,
            expires_at,
            actor,
            None if granter is None else sorted(granter.permissions),
            None if granter is None else granter.reach,
        ),
        _object,
    )


def bootstrap_token(token_hash: bytes) -> Call[bool]:
    return Call("select fenceline.bootstrap_token($1)", (token_hash,), scalar)


def list_tokens(
    *, tenant: str | None, limit: int = 100, cursor: int | None = None, valid: bool | None = None
) -> Call[list[dict[str, Any]]]:
    return Call(
        "select fenceline.list_tokens($1, $2, $3, $4)", (tenant, limit, cursor, valid), _objects, repeatable=True
    )


def revoke_token(token_id: int, *, actor: str | None, tenant: str | None) -> Call[dict[str, Any]]:
    return Call("select fenceline.revoke_token($1, $2, $3)", (token_id, actor, tenant), _object, repeatable=True)


def list_roles(name: str | None = None) -> Call[list[dict[str, Any]]]:
    return Call("select fenceline.list_roles($1)", (name,), _objects, repeatable=True)


def set_role(
    name: str,
    *,
    permissions: list[str] | None,
    own_jobs: bool | None,
    actor: str | None,
    create: bool,
    granter: Identity | None = None,
) -> Call[dict[str, Any]]:
    return Call(
        "select fenceline.set_role($1, $2, $3, $4, $5, $6, $7)",
        (
            name,
            permissions,
            own_jobs,
            actor,
            create,
            None if granter is None else sorted(granter.permissions),
            None if granter is None else granter.tenant,
        ),
        _object,
    )


def delete_role(name: str, granter: Identity) -> Call[None]:
    return Call(
        "select fenceline.delete_role($1, $2, $3, $4)",
        (name, granter.actor, sorted(granter.permissions), granter.tenant),
        nothing,
    )
