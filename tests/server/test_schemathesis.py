"""Generated requests against a live server, as every role: no 5xx, no answer that the document does not describe."""

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.server.conftest import make_token
from tests.server.live import live_server
from tests.server.operations import document

from fenceline import Fenceline

ROLES = ("viewer", "producer", "operator", "fleet_operator", "runner", "platform_admin")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
SETTINGS = settings(
    max_examples=4,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def url_and_tokens(database: str) -> Iterator[tuple[str, dict[str, str]]]:
    async def make_tokens() -> dict[str, str]:
        async with Fenceline(database) as app:
            return {role: await make_token(app, role) for role in ROLES}

    tokens = asyncio.run(make_tokens())
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select fenceline.enqueue('seed', '{}', '{}', 'producer-2') from generate_series(1, 5)")
    with live_server(Fenceline(database)) as url:
        yield url, tokens


@pytest.mark.timeout(1800)  # thousands of requests
def test_no_server_error_and_no_undescribed_answer(url_and_tokens: tuple[str, dict[str, str]]) -> None:
    url, tokens = url_and_tokens
    statuses: dict[str, set[int]] = {role: set() for role in ROLES}

    def probe(case: schemathesis.Case[Any]) -> None:
        for role in ROLES:  # to make a case costs more than to send it
            case.headers["Authorization"] = f"Bearer {tokens[role]}"
            response = case.call(base_url=url)
            case.validate_response(response, checks=CHECKS)
            statuses[role].add(response.status_code)

    schema = schemathesis.openapi.from_dict(document())
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        described = document()["paths"][operation.path][operation.method]
        takes_something = "parameters" in described or "requestBody" in described
        for mode in (GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if takes_something else [])):
            SETTINGS(given(case=operation.as_strategy(generation_mode=mode))(probe))()
    # They came through to the routes, or were kept out of them.
    for role, seen in statuses.items():
        assert {200, 403} <= seen or role == "platform_admin"
        assert {404, 422} <= seen or role == "runner"
