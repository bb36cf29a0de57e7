"""What clients of the HTTP API rely on, taken from its OpenAPI document: operations, parameters, fields.

`python -m tests.foreign.contract DOCUMENT` prints it; `contract_0_1_0.json` is that of the release.
"""

import json
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def contract_of(document: Json) -> dict[str, Json]:
    return {
        f"{method.upper()} {path}": _operation(document, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def broken(old: dict[str, Json], new: dict[str, Json]) -> list[str]:
    """What somebody who knows only the old contract would run into."""
    found = [f"{name} is gone" for name in old if name not in new]
    for name in old.keys() & new.keys():
        for what in ("parameters", "body", "answer"):
            found += [f"{name}: {what} {field} is gone" for field in set(old[name][what]) - set(new[name][what])]
        found += [f"{name}: {field} is demanded" for field in set(new[name]["demanded"]) - set(old[name]["demanded"])]
        found += [f"{name}: no {status} any more" for status in set(old[name]["success"]) - set(new[name]["success"])]
    return sorted(found)


def _operation(document: Json, operation: Json) -> Json:
    parameters = operation.get("parameters", [])
    body = operation.get("requestBody", {})
    bodies = [_resolve(document, content["schema"]) for content in body.get("content", {}).values()]
    success = {status: answer for status, answer in operation["responses"].items() if status < "300"}
    answers = [
        _resolve(document, content["schema"])
        for answer in success.values()
        for content in answer.get("content", {}).values()
    ]
    return {
        "parameters": sorted(parameter["name"] for parameter in parameters),
        "body": sorted({field for schema in bodies for field in schema.get("properties", {})}),
        "answer": sorted({field for schema in answers for field in schema.get("properties", {})}),
        "demanded": sorted(
            {parameter["name"] for parameter in parameters if parameter.get("required")}
            | {field for schema in bodies for field in schema.get("required", [])}
        ),
        "success": sorted(success),
    }


def _resolve(document: Json, schema: Json) -> Json:
    """A schema behind its reference; of alternatives the one that has fields."""
    for part in [schema, *schema.get("anyOf", [])]:
        if "$ref" in part:
            found: Json = document["components"]["schemas"][part["$ref"].rpartition("/")[2]]
            return found
    return schema


if __name__ == "__main__":
    print(json.dumps(contract_of(json.loads(Path(sys.argv[1]).read_text())), sort_keys=True))  # noqa: T201
