"""Signing in at an identity provider, in a browser; and everything about it that may be wrong."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from playwright.sync_api import Browser, expect
from tests.dashboard.conftest import new_context
from tests.dashboard.site import Site, site_on
from tests.support.patience import seconds_left

from fenceline.server.server_settings import OidcClient, OidcSettings

pytestmark = pytest.mark.xdist_group("dashboard oidc")


@dataclass
class Provider:
    """Signs in everybody as ada; `claims` change what its next token says."""

    key: rsa.RSAPrivateKey
    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)

    def authorize(self, query: dict[str, str]) -> str:
        self.asked = query
        more = {"code": "the-code", "state": query["state"], "iss": self.url}  # providers add words of their own
        return f"{query['redirect_uri']}?{urlencode(more)}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any]:
        assert form["code"] == "the-code"
        assert base64.b64decode(authorization.removeprefix("Basic ")) == b"dashboard:s3cret"
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == self.asked["code_challenge"]
        claims = {
            "iss": self.url, "aud": "dashboard", "sub": "ada", "exp": time.time() + 300, "nonce": self.asked["nonce"],
            "fenceline_role": "operator", "fenceline_tenant": "acme", **self.claims,
        }  # fmt: skip
        signed = jwt.encode(claims, self.key, "RS256", headers={"kid": "one"})
        return {"access_token": "unused", "token_type": "Bearer", "id_token": signed}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    provider = Provider(rsa.generate_private_key(65537, 2048))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            self.send_response(302)
            self.send_header("Location", provider.authorize(query))
            self.end_headers()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            answer = json.dumps(provider.token(form, self.headers.get("Authorization", ""))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield provider
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def oidc_site(site_database: str, provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    keys: Path = tmp_path_factory.mktemp("oidc") / "keys.json"
    public = {**json.loads(RSAAlgorithm.to_jwk(provider.key.public_key())), "kid": "one", "use": "sig"}
    keys.write_text(json.dumps({"keys": [public]}))
    client = OidcClient(
        client_id="dashboard",
        client_secret="s3cret",  # noqa: S106 - of the provider above
        authorize_url=f"{provider.url}/authorize",
        token_url=f"{provider.url}/token",
    )
    oidc = OidcSettings(jwks_file=keys, issuer=provider.url, audience="dashboard", client=client)
    with site_on(site_database, oidc=oidc) as site:
        yield site


def test_signing_in_with_the_organisation(browser: Browser, oidc_site: Site, provider: Provider) -> None:
    provider.claims = {}
    with new_context(browser, oidc_site.url) as context:
        page = context.new_page()
        page.goto("/")
        page.get_by_role("link", name="Sign in with your organisation").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        expect(page.locator(".who")).to_contain_text("oidc:ada")
        expect(page.locator(".who")).to_contain_text("tenant acme")
        [cookie] = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


@pytest.fixture
def person(oidc_site: Site) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=oidc_site.url, timeout=seconds_left()) as client:
        yield client


def come_back(person: httpx.Client) -> httpx.Response:
    """Through the provider, to the callback."""
    there = person.get("/v1/session/oidc").headers["location"]
    back = httpx.get(there, timeout=seconds_left()).headers["location"]
    return person.get(back)


def test_the_way_back_opens_a_session(person: httpx.Client, provider: Provider) -> None:
    provider.claims = {}
    assert come_back(person).status_code == 200
    assert person.get("/v1/session").json()["actor"] == "oidc:ada"


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "of another sign-in"},
        {"aud": "another"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"fenceline_role": "nobody"},
        {"fenceline_role": "platform_admin"},
    ],
    ids=str,
)
def test_a_token_that_is_not_right_opens_none(person: httpx.Client, provider: Provider, claims: dict[str, Any]) -> None:
    provider.claims = claims
    assert come_back(person).status_code == 401
    assert person.get("/v1/session").status_code == 401


def test_a_sign_in_that_another_browser_began_opens_none(person: httpx.Client, provider: Provider) -> None:
    provider.claims = {}
    there = person.get("/v1/session/oidc").headers["location"]
    back = httpx.get(there, timeout=seconds_left()).headers["location"]
    with httpx.Client(base_url=str(person.base_url), timeout=seconds_left()) as victim:
        assert victim.get(back).status_code == 401  # no cookie of the attempt
        victim.get("/v1/session/oidc")
        assert victim.get(back).status_code == 401  # the state of another attempt
        assert victim.get("/v1/session/oidc/callback").status_code == 401


def test_without_a_provider_there_is_no_such_way(site: Site) -> None:
    assert httpx.get(f"{site.url}/v1/session/oidc", timeout=seconds_left()).status_code == 404
