"""Every route, from the contract."""

import json
from collections.abc import Iterator
from typing import Any

from scripts.manual.links import ROOT
from scripts.manual.reference.markdown import code, table

CONTRACT: dict[str, Any] = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))
#: What most people look for stands first.
TAGS = [
    "jobs",
    "signals",
    "streams",
    "stats",
    "schedules",
    "triggers",
    "hooks",
    "webhooks",
    "runners",
    "attempts",
    "admin",
]
METHODS = ("get", "post", "put", "patch", "delete")


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and what the contract says."""
    for path, methods in CONTRACT["paths"].items():
        for method in METHODS:
            if method in methods:
                yield method.upper(), path, methods[method]


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = CONTRACT["components"]["schemas"][name] if name else schema
    return found


def type_of(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_of(part) for part in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")


def fields(schema: dict[str, Any]) -> list[list[str]]:
    """Of a body."""
    body = resolved(schema)
    required = body.get("required", ())
    return [
        [code(name), type_of(value) + ("" if name in required else ", optional"), value.get("description", "")]
        for name, value in body.get("properties", {}).items()
    ]


def parameters(operation: dict[str, Any]) -> list[list[str]]:
    return [
        [
            code(given["name"]),
            f"{given['in']}, {type_of(given['schema'])}" + ("" if given.get("required") else ", optional"),
            given.get("description", ""),
        ]
        for given in operation.get("parameters", ())
    ]


def body_of(content: dict[str, Any]) -> dict[str, Any] | None:
    found: dict[str, Any] = next(iter(content.values()), {})
    return found.get("schema") or None


def described(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"### {method} `{path}`", operation.get("description") or operation.get("summary", "")]
    needs = operation["x-permission"]
    parts.append("Needs no token." if needs == "public" else f"Needs {code(needs)}.")
    if rows := parameters(operation):
        parts.append(table(["parameter", "in, type", "what"], rows))
    body = body_of(operation.get("requestBody", {}).get("content", {}))
    if body and (rows := fields(body)):
        parts.append(table(["body", "type", "what"], rows))
    parts += [f"Answers {', '.join(good(operation))}.", f"Refuses with {', '.join(refusals(operation))}."]
    return "\n\n".join(part for part in parts if part)


def good(operation: dict[str, Any]) -> Iterator[str]:
    """The answers when all is well."""
    for status, answer in operation["responses"].items():
        if status < "400":
            schema, said = body_of(answer.get("content", {})), answer.get("description", "").rstrip(".")
            words = "" if said == "Successful Response" else f" ({said})"
            yield f"`{status}`{words}" + (f" with {code(type_of(schema))}" if schema else "")


def refusals(operation: dict[str, Any]) -> Iterator[str]:
    for status, answer in operation["responses"].items():
        if status >= "400":
            codes = next(iter(answer["content"].values()))["examples"]
            yield f"{status} " + " or ".join(map(code, codes))


def place(tag: tuple[str, list[str]]) -> int:
    return TAGS.index(tag[0]) if tag[0] in TAGS else len(TAGS)


def page() -> str:
    tags: dict[str, list[str]] = {}
    for method, path, operation in operations():
        tags.setdefault(next(iter(operation.get("tags", ["other"]))), []).append(described(method, path, operation))
    parts = [f"## {tag.capitalize()}\n\n" + "\n\n".join(found) for tag, found in sorted(tags.items(), key=place)]
    return (
        """# HTTP routes

Every route of `fenceline server`, from [openapi.json](../openapi.json). [HTTP](../guides/http.md) has a session with curl, permissions and compatibility between versions;
[Errors](errors.md#over-http) explains the codes.

"""
        + "\n\n".join(parts)
        + "\n"
    )
