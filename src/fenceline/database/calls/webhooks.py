"""Webhooks: triggers, which enqueue jobs when somebody calls, and hooks, which are called when jobs end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fenceline.database.call import As, Call, function, jsonb, rows_of, tuples_of, value_of
from fenceline.database.calls.enqueue import SUBMITTED, Submitted, submitted
from fenceline.database.decoding import column, json_value, nothing
from fenceline.model.identity import Identity
from fenceline.model.sealed import seal_json, seal_text

#: The kind of the jobs that deliver outgoing webhooks, and their lane.
KIND = "fenceline.webhook"
LANE = "webhooks"


def triggers(tenant: str | None, name: str | None = None) -> Call[list[str]]:
    """Each as JSON text."""
    return rows_of(function("triggers", locals()), "r", column, repeatable=True)


def create_trigger(name: str, settings: Mapping[str, Any], secret: str, viewer: Identity) -> Call[str]:
    called = function(
        "create_trigger",
        name=name,
        settings=jsonb(settings),
        secret=As("text", secret, seal_text),
        tenant=viewer.tenant,
        actor=viewer.actor,
    )
    return value_of(called)


def delete_trigger(name: str, tenant: str, viewer: Identity) -> Call[None]:
    return value_of(function("delete_trigger", name=name, tenant=tenant, actor=viewer.actor), nothing)


@dataclass(frozen=True, slots=True)
class TriggerKey:
    """What it takes to check a request to a trigger."""

    tenant: str
    kind: str
    scheme: str
    secret: str
    window_seconds: int
    idempotency_header: str | None
    dedupe_header: str | None
    now: float


def trigger_keys(name: str) -> Call[list[TriggerKey]]:
    return tuples_of(TriggerKey, function("trigger_keys", locals()))


def trigger_args(name: str, tenant: str, body: str) -> Call[dict[str, Any]]:
    return value_of(function("trigger_args", locals(), body=As("jsonb", body)), json_value, repeatable=True)


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
    called = function("fire_trigger", locals(), args=As("json", args, seal_json), defaults=As("json", defaults))
    return rows_of(called, SUBMITTED, submitted)


def hooks(tenant: str | None) -> Call[list[str]]:
    """Each as JSON text."""
    return rows_of(function("hooks", locals()), "r", column, repeatable=True)


def create_hook(
    url: str, secret: str, viewer: Identity, *, kinds: list[str] | None, statuses: list[str] | None
) -> Call[str]:
    called = function(
        "create_hook",
        locals(),
        secret=As("text", secret, seal_text),
        tenant=viewer.tenant,
        actor=viewer.actor,
    )
    return value_of(called)


def delete_hook(hook_id: int, viewer: Identity) -> Call[None]:
    return value_of(function("delete_hook", id=hook_id, tenant=viewer.reach, actor=viewer.actor), nothing)


def rotate_secret(
    secret: str,
    overlap_seconds: float,
    viewer: Identity,
    *,
    tenant: str | None,
    trigger: str | None = None,
    hook_id: int | None = None,
) -> Call[str]:
    """Of a trigger, or of a hook."""
    called = function("rotate_secret", locals(), secret=As("text", secret, seal_text), actor=viewer.actor)
    return value_of(called)


def has_webhooks() -> Call[bool]:
    return value_of(function("has_webhooks"), repeatable=True)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where to send what; `body` is None if the job is gone."""

    url: str
    secrets: tuple[str, ...]  # one, or two while an old one is still valid
    body: str | None


def webhook_delivery(hook_id: int, job_id: int, tenant: str) -> Call[Delivery | None]:
    return rows_of(
        function("webhook_delivery", locals()),
        "url, secret, body",
        lambda rows: Delivery(rows[0][0], tuple(row[1] for row in rows), rows[0][2]) if rows else None,
        repeatable=True,
    )
