"""Who may do what over HTTP: tokens, browser sessions and roles."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from fenceline.database.call import As, Call, Function, Sql, function, rows_of, statement, value_of
from fenceline.database.decoding import Row, json_value, json_values, nothing
from fenceline.model.identity import Identity

_IDENTITY = "id, actor, role, tenant, permissions, own_jobs, all_tenants, lanes, kinds"


def _read_identity(row: Row) -> Identity:
    token_id, actor, role, tenant, permissions, own_jobs, all_tenants, lanes, kinds = row
    return Identity(
        token_id=token_id,
        actor=actor,
        role=role,
        tenant=tenant,
        permissions=frozenset(permissions),
        own_jobs=own_jobs,
        all_tenants=all_tenants,
        lanes=None if lanes is None else frozenset(lanes),
        kinds=None if kinds is None else frozenset(kinds),
    )


def _first_identity(rows: Sequence[Row]) -> Identity | None:
    return _read_identity(rows[0]) if rows else None


def _token(token_hash: bytes | Sql) -> Function:
    return function("identify_token", hash=token_hash)


def _session(session_hash: bytes | Sql) -> Function:
    return function("identify_session", hash=session_hash)


def identify_token(token_hash: bytes) -> Call[Identity | None]:
    """Who a token speaks for; None if it is not valid."""
    return rows_of(_token(token_hash), _IDENTITY, _first_identity, repeatable=True)


def identify_session(session_hash: bytes) -> Call[Identity | None]:
    """Who a browser session speaks for."""
    return rows_of(_session(session_hash), _IDENTITY, _first_identity, repeatable=True)


def identify_all(hashes: list[bytes]) -> Call[dict[bytes, Identity]]:
    """Who each of these tokens and sessions speaks for now; those that are not valid are left out."""
    return statement(
        "select h, {} from unnest({}) h cross join lateral (select * from {} union all select * from {}) i",
        Sql(_IDENTITY),
        As("bytea[]", hashes),
        _token(Sql("h")),
        _session(Sql("h")),
        decode=lambda rows: {row[0]: _read_identity(row[1:]) for row in rows},
        repeatable=True,
    )


def create_token(
    token_hash: bytes,
    *,
    role: str,
    tenant: str | None,
    name: str | None,
    expires_at: datetime | Literal["never"] | None,
    actor: str | None,
    granter: Identity | None = None,
) -> Call[dict[str, Any]]:
    """`expires_at` None: after the setting token_seconds.

    `granter`: who asks for it over HTTP; None means somebody with access to the database itself.
    """
    ends = "infinity" if expires_at == "never" else expires_at and expires_at.isoformat()
    may_give = None if granter is None else granter.permissions | (set() if granter.own_jobs else {"jobs:read_all"})
    called = function(
        "create_token",
        hash=token_hash,
        role=role,
        tenant=tenant,
        name=name,
        expires_at=As("timestamptz", As("text", ends)),
        actor=actor,
        granter_permissions=None if may_give is None else sorted(may_give),
        granter_tenant=None if granter is None else granter.reach,
    )
    return value_of(called, json_value)


def rotate_token(token_hash: bytes, new_hash: bytes, *, overlap_seconds: float) -> Call[dict[str, Any]]:
    called = function("rotate_token", hash=token_hash, new_hash=new_hash, overlap_seconds=overlap_seconds)
    return value_of(called, json_value)


def bind_token(
    token_id: int, *, lanes: Sequence[str] | None, kinds: Sequence[str] | None, actor: str | None
) -> Call[dict[str, Any]]:
    called = function("bind_token", id=token_id, lanes=lanes, kinds=kinds, actor=actor)
    return value_of(called, json_value, repeatable=True)


def bootstrap_token(token_hash: bytes) -> Call[bool]:
    return value_of(function("bootstrap_token", hash=token_hash))


def list_tokens(
    *, tenant: str | None, limit: int = 100, cursor: int | None = None, valid: bool | None = None
) -> Call[list[dict[str, Any]]]:
    return value_of(function("list_tokens", locals()), json_values, repeatable=True)


def revoke_token(token_id: int, *, actor: str | None, tenant: str | None) -> Call[dict[str, Any]]:
    return value_of(function("revoke_token", id=token_id, actor=actor, tenant=tenant), json_value, repeatable=True)


def create_login_code(code_hash: bytes, token_hash: bytes, *, seconds: float) -> Call[datetime]:
    """When the code expires."""
    return value_of(function("create_login_code", hash=code_hash, token=token_hash, seconds=seconds))


def open_session(
    session_hash: bytes,
    *,
    seconds: float,
    token_hash: bytes | None = None,
    code_hash: bytes | None = None,
    foreign: Identity | None = None,
) -> Call[datetime | None]:
    """When the session expires; None if the token or code is not valid. `foreign`: whom an identity provider named."""
    called = function(
        "open_session",
        hash=session_hash,
        seconds=seconds,
        token=token_hash,
        code=code_hash,
        actor=None if foreign is None else foreign.actor,
        role=None if foreign is None else foreign.role,
        tenant=None if foreign is None else foreign.tenant,
    )
    return value_of(called)


def close_session(session_hash: bytes) -> Call[None]:
    return value_of(function("close_session", hash=session_hash), nothing, repeatable=True)


def list_roles(name: str | None = None) -> Call[list[dict[str, Any]]]:
    return value_of(function("list_roles", locals()), json_values, repeatable=True)


def set_role(
    name: str,
    *,
    permissions: list[str] | None,
    own_jobs: bool | None,
    actor: str | None,
    create: bool,
    granter: Identity | None = None,
) -> Call[dict[str, Any]]:
    called = function(
        "set_role",
        name=name,
        permissions=permissions,
        own_jobs=own_jobs,
        actor=actor,
        create=create,
        granter_permissions=None if granter is None else sorted(granter.permissions),
        actor_tenant=None if granter is None else granter.tenant,
    )
    return value_of(called, json_value)


def delete_role(name: str, granter: Identity) -> Call[None]:
    called = function(
        "delete_role",
        name=name,
        actor=granter.actor,
        granter_permissions=sorted(granter.permissions),
        actor_tenant=granter.tenant,
    )
    return value_of(called, nothing)
