"""Bodies of incoming webhooks as JSON: JSON itself, or a form.

A form whose only field is `payload` carries JSON in it, as GitHub and Slack's buttons send it; any other form is an
object of its fields, with a list where one is repeated.
"""

import json
from typing import Any
from urllib.parse import parse_qsl

from fenceline.server.problems import Problem
from fenceline.server.routing import read_json

FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 1000


def read_payload(content_type: str, body: bytes) -> tuple[Any, str]:
    """What a body says, and the same as JSON text. Raises Problem `invalid`."""
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
