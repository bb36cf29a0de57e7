"""Bodies of webhooks and callbacks, which come without a token: JSON, or a form.

A form whose only field is `payload` carries JSON in it, as GitHub and Slack's buttons send it; any other form is an
object of its fields, with a list where one is repeated.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, read_json

FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 1000


def body_of(schema: str, *, required: bool) -> dict[str, Any]:
    """The OpenAPI description of such a body."""
    content = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    return {"requestBody": {"required": required, "content": {"application/json": content, FORM: content}}}


async def read_unknown_body(request: ApiRequest, hear: Callable[[bytes], None] | None = None) -> bytes:
    """The body, limited in size and time, as the sender is not known yet. `hear` gets it piece by piece.

    Raises Problem `too_large`, `timeout`.
    """
    settings, body = request.server.settings, bytearray()
    seconds = settings.trigger_body_seconds
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.bounded_stream(settings.trigger_body_bytes):
                body += chunk
                if hear is not None:
                    hear(chunk)
    except TimeoutError:
        raise Problem("timeout", f"the body took more than {seconds:g} s") from None
    return bytes(body)


def read_payload(content_type: str, body: bytes) -> tuple[Any, str]:
    """The value of a body, and the same as JSON text. Raises Problem `invalid`."""
    if content_type.partition(";")[0].strip().lower() != FORM:
        return read_json(body), body.decode()
    fields = _read_form(body)
    payload = fields.get("payload")
    if len(fields) == 1 and isinstance(payload, str):
        return read_json(payload.encode()), payload
    return fields, json.dumps(fields)


def _read_form(body: bytes) -> dict[str, str | list[str]]:
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError as error:
        raise Problem("invalid", f"the body is not a form: {error}") from error
    fields: dict[str, str | list[str]] = {}
    for name, value in pairs:
        known = fields.get(name)
        fields[name] = value if known is None else [*([known] if isinstance(known, str) else known), value]
    return fields
