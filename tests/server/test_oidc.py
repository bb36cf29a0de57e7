"""Tokens of an identity provider: accepted when everything about them is right, and only then."""

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from fastapi import FastAPI
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from tests.server.conftest import client_of, running
from tests.server.test_jobs import is_problem

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.oidc import OidcUnusable
from fenceline.server.server_settings import OidcSettings, ServerSettings

ISSUER, AUDIENCE = "https://login.example", "fenceline"
ADMIN_CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": 9e9, "fenceline_role": "platform_admin"}
Sign = Callable[..., str]


@pytest.fixture(scope="module")
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def jwks_file(tmp_path: Path, rsa_key: rsa.RSAPrivateKey) -> Path:
    path = tmp_path / "keys.json"
    key = {**json.loads(RSAAlgorithm.to_jwk(rsa_key.public_key())), "kid": "one", "use": "sig"}
    path.write_text(json.dumps({"keys": [key]}))
    return path


@pytest.fixture
async def api(queue_app: Fenceline, jwks_file: Path) -> AsyncIterator[FastAPI]:
    oidc = OidcSettings(jwks_file=jwks_file, issuer=ISSUER, audience=AUDIENCE)
    settings = ServerSettings(maintain=False, token_cache_seconds=0.0, oidc=oidc)
    async with running(create_app(settings, queue_app)) as api:
        yield api


@pytest.fixture
def sign(rsa_key: rsa.RSAPrivateKey) -> Sign:
    def make(*, key: Any = None, algorithm: str = "RS256", kid: str = "one", **claims: Any) -> str:
        whole: dict[str, Any] = {
            "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 300, "fenceline_role": "producer",
            "fenceline_tenant": "acme", **claims,
        }  # fmt: skip
        present = {name: value for name, value in whole.items() if value is not None}
        return jwt.encode(present, key or rsa_key, algorithm, headers={"kid": kid})

    return make


async def test_role_tenant_and_actor_come_from_the_claims(api: FastAPI, sign: Sign) -> None:
    async with client_of(api, sign()) as ada:
        job = (await ada.post("/v1/jobs", json={"kind": "a"})).json()
        assert (job["created_by"], job["tenant"]) == ("oidc:ada", "acme")
        assert [found["id"] for found in (await ada.get("/v1/jobs")).json()["items"]] == [job["id"]]
        is_problem(await ada.get("/v1/admin/audit"), 403, "forbidden")
    async with client_of(api, sign(sub="grace")) as grace:
        is_problem(await grace.get(f"/v1/jobs/{job['id']}"), 404, "not_found")
    async with client_of(api, sign(sub="op", fenceline_role="operator")) as operator:
        assert (await operator.get(f"/v1/jobs/{job['id']}")).status_code == 200
    async with client_of(api, sign(fenceline_tenant=None)) as untenanted:
        assert (await untenanted.post("/v1/jobs", json={"kind": "a"})).json()["tenant"] == "default"


async def test_anything_wrong_is_refused(api: FastAPI, sign: Sign, rsa_key: rsa.RSAPrivateKey) -> None:
    other = rsa.generate_private_key(65537, 2048)
    public = RSAAlgorithm.to_jwk(rsa_key.public_key()).encode()
    good = sign()
    head, body, signature = good.split(".")
    unsigned = part({"alg": "none", "kid": "one"}).decode()
    admin = part(ADMIN_CLAIMS).decode()
    for what, token in {
        "expired": sign(exp=time.time() - 60),
        "without expiry": sign(exp=None),
        "not yet valid": sign(nbf=time.time() + 600),
        "another issuer": sign(iss="https://evil.example"),
        "without issuer": sign(iss=None),
        "another audience": sign(aud="other"),
        "without audience": sign(aud=None),
        "without subject": sign(sub=None),
        "without role": sign(fenceline_role=None),
        "unknown role": sign(fenceline_role="boss"),
        "role of another type": sign(fenceline_role=["operator"]),
        "another key": sign(key=other),
        "another key's name": sign(kid="two"),
        "a shared secret": hs256(public),
        "no signature": f"{unsigned}.{admin}.",
        "body changed": f"{head}.{admin}.{signature}",
        "signature cut": f"{head}.{body}.",
        "nonsense": "a.b.c",
    }.items():
        async with client_of(api, token) as client:
            response = await client.get("/v1/jobs")
            assert response.status_code == 401, what
    async with client_of(api, good) as client:
        assert (await client.get("/v1/jobs")).status_code == 200


def part(value: dict[str, Any]) -> bytes:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")


def hs256(public_key: bytes) -> str:
    """Signed with the public key as if it were a secret: the classical confusion of algorithms."""
    text = part({"alg": "HS256", "kid": "one"}) + b"." + part(ADMIN_CLAIMS)
    signature = base64.urlsafe_b64encode(hmac.new(public_key, text, hashlib.sha256).digest()).rstrip(b"=")
    return (text + b"." + signature).decode()


def rewrite(path: Path, text: str, *, later: float) -> None:
    """With a time of its own, however coarse the file system's clock is."""
    path.write_text(text)
    os.utime(path, (time.time() + later, time.time() + later))


async def test_new_keys_need_no_restart(api: FastAPI, sign: Sign, jwks_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    token = sign(key=key, algorithm="ES256", kid="two")
    async with client_of(api, token) as client:
        assert (await client.get("/v1/jobs")).status_code == 401
        rotated = {**json.loads(ECAlgorithm.to_jwk(key.public_key())), "kid": "two"}
        rewrite(jwks_file, json.dumps({"keys": [rotated]}), later=5)
        assert (await client.get("/v1/jobs")).status_code == 200
        rewrite(jwks_file, "{", later=9)
        assert (await client.get("/v1/jobs")).status_code == 200  # a broken file does not lock everybody out
    async with client_of(api, sign()) as old:
        assert (await old.get("/v1/jobs")).status_code == 401


def test_a_file_without_keys_is_said_at_the_start(tmp_path: Path) -> None:
    for text in (None, "{", '{"keys": []}'):
        path = tmp_path / "keys.json"
        if text is not None:
            path.write_text(text)
        oidc = OidcSettings(jwks_file=path, issuer=ISSUER, audience=AUDIENCE)
        with pytest.raises(OidcUnusable, match=r"keys\.json cannot be read"):
            create_app(ServerSettings(oidc=oidc), Fenceline("postgresql://nowhere"))
