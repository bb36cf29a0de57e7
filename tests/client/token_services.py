"""Token services on loopback that check what Google's and Microsoft's check, written from their documentation.

https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token
https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken
https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow (third case, federated credential)
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import jwt

PROVIDER = "projects/123456/locations/global/workloadIdentityPools/ci/providers/cluster"
AUDIENCE = f"//iam.googleapis.com/{PROVIDER}"
ACCOUNT = "deployer@project.iam.gserviceaccount.com"
TENANT_ID = "11111111-2222-3333-4444-555555555555"
CLIENT_ID = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
SUBJECT = "system:serviceaccount:jobs:worker"
ISSUER = "https://cluster.example.org"
KEY = "the key of the issuer, which both services trust"
FEDERATED = "federated-token-of-the-pool"
GCP_TOKEN = "ya29.token-of-the-service-account"  # noqa: S105 - of no use anywhere
AZURE_TOKEN = "eyJ.token-of-the-application"  # noqa: S105 - the same

Answer = tuple[int, dict[str, Any]]


def workload_token(audience: str, *, subject: str = SUBJECT, seconds: float = 600, key: str = KEY) -> str:
    claims = {"iss": ISSUER, "sub": subject, "aud": audience, "exp": time.time() + seconds}
    return jwt.encode(claims, key, algorithm="HS256")


@dataclass
class Services:
    url: str = ""
    asked: list[str] = field(default_factory=list)
    broken: Answer | None = None  # answered instead, whatever is asked

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        self.asked.append(path)
        if self.broken is not None:
            return self.broken
        routes: dict[str, Callable[[dict[str, str], bytes], Answer]] = {
            "/v1/token": exchange,
            f"/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken": impersonate,
            f"/{TENANT_ID}/oauth2/v2.0/token": client_credentials,
        }
        if path not in routes:
            return 404, {"error": {"code": 404, "message": "Not found", "status": "NOT_FOUND"}}
        return routes[path](headers, body)


def form(headers: dict[str, str], body: bytes) -> dict[str, str]:
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    return {name: value for name, [value] in parse_qs(body.decode(), strict_parsing=True).items()}


def is_trusted(token: str, audience: str) -> bool:
    try:
        claims = jwt.decode(token, KEY, algorithms=["HS256"], audience=audience, issuer=ISSUER)
    except jwt.InvalidTokenError:
        return False
    return bool(claims["sub"] == SUBJECT)


def exchange(headers: dict[str, str], body: bytes) -> Answer:
    given = form(headers, body)
    if given.get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange":
        return 400, {"error": "unsupported_grant_type", "error_description": "Invalid grant type"}
    types = {name: given.get(name) for name in ("requested_token_type", "subject_token_type")}
    if types != {
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    }:
        return 400, {"error": "invalid_request", "error_description": "Invalid type of token"}
    if given.get("audience") != AUDIENCE:
        return 400, {"error": "invalid_target", "error_description": "The target service indicated is invalid"}
    if not given.get("scope"):
        return 400, {"error": "invalid_scope", "error_description": "Scope is missing"}
    if not is_trusted(given.get("subject_token", ""), f"https://iam.googleapis.com/{PROVIDER}"):
        return 400, {"error": "invalid_grant", "error_description": f"not valid: {given.get('subject_token')}"}
    kind = "urn:ietf:params:oauth:token-type:access_token"
    return 200, {"access_token": FEDERATED, "issued_token_type": kind, "token_type": "Bearer", "expires_in": 3599}


def impersonate(headers: dict[str, str], body: bytes) -> Answer:
    if headers.get("authorization") != f"Bearer {FEDERATED}":
        return 401, {"error": {"code": 401, "message": "no credentials", "status": "UNAUTHENTICATED"}}
    given = json.loads(body)
    assert headers["content-type"] == "application/json"
    seconds = given["lifetime"]
    if not (seconds.endswith("s") and 0 < int(seconds[:-1]) <= 3600 and given["scope"]):
        return 400, {"error": {"code": 400, "message": "bad lifetime or scope", "status": "INVALID_ARGUMENT"}}
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + int(seconds[:-1])))
    return 200, {"accessToken": GCP_TOKEN, "expireTime": expires}


def client_credentials(headers: dict[str, str], body: bytes) -> Answer:
    given = form(headers, body)
    if given.get("grant_type") != "client_credentials":
        return 400, {"error": "unsupported_grant_type", "error_description": "AADSTS70003"}
    if given.get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer":
        return 400, {"error": "invalid_request", "error_description": "AADSTS900144"}
    if given.get("client_id") != CLIENT_ID:
        return 400, {"error": "unauthorized_client", "error_description": "AADSTS700016"}
    if not given.get("scope", "").endswith("/.default") or " " in given["scope"]:
        return 400, {"error": "invalid_scope", "error_description": "AADSTS1002012"}
    if not is_trusted(given.get("client_assertion", ""), "api://AzureADTokenExchange"):
        return 401, {"error": "invalid_client", "error_description": f"AADSTS700211 {given.get('client_assertion')}"}
    return 200, {"token_type": "Bearer", "expires_in": 3599, "ext_expires_in": 3599, "access_token": AZURE_TOKEN}


@contextmanager
def token_services() -> Iterator[Services]:
    services = Services()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, answer = services.answer(self.path, headers, body)
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        services.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield services
        finally:
            server.shutdown()
            thread.join()
