"""Claims of an identity provider: checked for their form, and they let nobody in everywhere."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from tests.server.conftest import client_of, running
from tests.server.test_oidc import AUDIENCE, ISSUER, Sign, api, jwks_file, rsa_key, sign

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import OidcSettings, ServerSettings

__all__ = ["api", "jwks_file", "rsa_key", "sign"]


async def status(api: FastAPI, token: str) -> int:
    async with client_of(api, token) as client:
        return (await client.get("/v1/jobs")).status_code


@pytest.fixture
async def narrow_api(queue_app: Fenceline, jwks_file: Path) -> AsyncIterator[FastAPI]:
    roles = frozenset({"viewer", "platform_admin"})
    oidc = OidcSettings(jwks_file=jwks_file, issuer=ISSUER, audience=AUDIENCE, roles=roles)
    settings = ServerSettings(maintain=False, token_cache_seconds=0.0, oidc=oidc)
    async with running(create_app(settings, queue_app)) as api:
        yield api


@pytest.mark.parametrize(
    "tenant", ["", "Acme", "acme ", "a" * 65, "acme\n", "acme\0", "../acme", "\u202eemca", 7, ["acme"], {"a": 1}, True]
)
async def test_a_tenant_that_is_no_name_is_refused(api: FastAPI, sign: Sign, tenant: object) -> None:
    assert await status(api, sign(fenceline_tenant=tenant)) == 401


async def test_an_actor_steers_no_terminal(api: FastAPI, sign: Sign) -> None:
    for actor in ("", "\x1b]0;x\x07", "a\nb", "a" * 201):
        assert await status(api, sign(sub=actor)) == 401
    assert await status(api, sign(sub="auth0|Ada Lovelace")) == 200


async def test_roles_that_cross_tenants_must_be_named(api: FastAPI, sign: Sign) -> None:
    for role in ("platform_admin", "fleet_operator"):
        assert await status(api, sign(fenceline_role=role)) == 401
    assert await status(api, sign(fenceline_role="operator")) == 200


async def test_roles_are_capped(narrow_api: FastAPI, sign: Sign) -> None:
    found = {role: await status(narrow_api, sign(fenceline_role=role)) for role in ROLES}
    assert found == {role: 200 if role in {"viewer", "platform_admin"} else 401 for role in ROLES}


ROLES = ("viewer", "producer", "operator", "fleet_operator", "runner", "platform_admin")
