"""Incoming and outgoing webhooks, as `Call`s."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fenceline.database.calls import Call, column, nothing, scalar
from fenceline.database.server_calls import Submitted
from fenceline.model.identity import Identity

#: The kind of the jobs that deliver outgoing webhooks, and their lane.
KIND = "fenceline.webhook"
LANE = "webhooks"


@dataclass(frozen=True, slots=True)
class TriggerKey:
    """What it takes to check a request to a trigger."""

    tenant: str
    kind: str
    secret: str
    window_seconds: int
    idempotency_header: str | None
    dedupe_header: str | None
    now: float


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where to send what; `body` is None when the job is gone."""

    url: str
    secret: str
    body: str | None


def triggers(tenant: str | None, name: str | None = None) -> Call[list[str]]:
    return Call("select t from fenceline.triggers($1, $2) t", (tenant, name), column, repeatable=True)


def create_trigger(name: str, settings: Mapping[str, Any], secret: str, identity: Identity) -> Call[str]:
    return Call(
        "select fenceline.create_trigger($1, cast($2 as jsonb), $3, $4, $5)",
        (name, json.dumps(dict(settings)), secret, identity.tenant, identity.actor),
        scalar,
    )


def delete_trigger(name: str, tenant: str, identity: Identity) -> Call[None]:
    return Call("select fenceline.delete_trigger($1, $2, $3)", (name, tenant, identity.actor), nothing)


def find_triggers(name: str) -> Call[list[TriggerKey]]:
    return Call(
        "select tenant, kind, secret, window_seconds, idempotency_header, dedupe_header, now "
        "from fenceline.find_triggers($1)",
        (name,),
        lambda rows: [TriggerKey(*row) for row in rows],
        repeatable=True,
    )


def trigger_args(name: str, tenant: str, body: str) -> Call[dict[str, Any]]:
    return Call(
        "select fenceline.trigger_args($1, $2, cast($3 as jsonb))",
        (name, tenant, body),
        lambda rows: dict(json.loads(scalar(rows))),
        repeatable=True,
    )


def fire_trigger(
    name: str,
    tenant: str,
    signature: bytes,
    args: str,
    *,
    idempotency_key: str | None,
    dedupe_key: str | None,
    defaults: str | None,
) -> Call[Submitted]:
    return Call(
        "select id, created, job from fenceline.fire_trigger($1, $2, $3, cast($4 as json), $5, $6, cast($7 as json))",
        (name, tenant, signature, args, idempotency_key, dedupe_key, defaults),
        lambda rows: Submitted(*rows[0]),
    )


def hooks(tenant: str | None) -> Call[list[str]]:
    return Call("select h from fenceline.hooks($1) h", (tenant,), column, repeatable=True)


def create_hook(
    url: str, secret: str, identity: Identity, *, kinds: list[str] | None, statuses: list[str] | None
) -> Call[str]:
    return Call(
        "select fenceline.create_hook($1, $2, $3, $4, $5, $6)",
        (url, secret, identity.tenant, kinds, statuses, identity.actor),
        scalar,
    )


def delete_hook(hook_id: int, identity: Identity) -> Call[None]:
    return Call("select fenceline.delete_hook($1, $2, $3)", (hook_id, identity.reach, identity.actor), nothing)


def has_webhooks() -> Call[bool]:
    return Call("select fenceline.has_webhooks()", (), scalar, repeatable=True)


def webhook_delivery(hook_id: int, job_id: int, tenant: str) -> Call[Delivery | None]:
    return Call(
        "select url, secret, body from fenceline.webhook_delivery($1, $2, $3)",
        (hook_id, job_id, tenant),
        lambda rows: Delivery(*rows[0]) if rows else None,
        repeatable=True,
    )
