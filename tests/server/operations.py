"""The operations of the OpenAPI document, from which tests are generated: a new route is in them by itself."""

import functools
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from fenceline import Fenceline
from fenceline.model.public_id import format_id
from fenceline.server.asgi_app import create_app
from fenceline.server.openapi import openapi
from fenceline.server.server_settings import ServerSettings

Json = dict[str, Any]
MISSING_ID = format_id(1)


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    permission: str
    statuses: frozenset[int]
    example: Json | None  # of the body; None: it takes none
    body_required: bool
    document: Json

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_public(self) -> bool:
        return self.permission == "public"

    def url(self, **values: str) -> str:
        """With a value for every parameter of the path."""
        return self.path.format(
            **{"id": MISSING_ID, "name": "absent", "owner": str(uuid4()), "secret": "absent", **values}
        )


@functools.cache
def document() -> Json:
    """Needs no database: it is made from the code."""
    return openapi(create_app(ServerSettings(), Fenceline("postgresql://nowhere")))


def operations() -> list[Operation]:
    whole = document()
    found = []
    for path, methods in whole["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody")
            found.append(
                Operation(
                    method=method.upper(),
                    path=path,
                    permission=operation["x-permission"],
                    statuses=frozenset(int(status) for status in operation["responses"]),
                    example=None if body is None else body_example(whole, body),
                    body_required=bool(body and body.get("required")),
                    document=operation,
                )
            )
    return found


def body_example(whole: Json, body: Json) -> Json:
    schema = body["content"]["application/json"]["schema"]
    for part in [schema, *schema.get("anyOf", ())]:
        if "$ref" in part:
            found: Json = resolve(whole, part)["examples"][0]
            return found
    raise AssertionError(f"no example in {schema}")


def resolve(whole: Json, schema: Json) -> Json:
    """A schema behind its reference."""
    while "$ref" in schema:
        schema = whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema
