"""The clouds' doors, on loopback: moto for AWS, and token services that check what Google's and Microsoft's check.

Keys, signatures and policies are checked by moto itself. A token of the platform must be signed by it, for the right
audience, from the right issuer and subject, and not be over.
"""

import json
import logging
import secrets
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import boto3  # type: ignore[import-untyped]
import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from infra_console.identities import SETTINGS

ISSUER, SUBJECT = "https://platform.example", "runner"
GCP_ACCOUNT, AZURE_CLIENT = "deployer@project.iam.gserviceaccount.com", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
AZURE_TENANT = "11111111-2222-3333-4444-555555555555"
AWS_ROLE = "arn:aws:iam::123456789012:role/deployer"
TRUST = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
MAY = {"runner": ["sts:AssumeRole"], "deployer": ["ec2:Describe*", "route53:List*"]}
SETUP_CALLS = 5  # that moto takes from anybody; all others are checked


class TokenServices:
    """The platform, which gives its runners tokens, and those who trust it; `issued` has every secret given out."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.issued: dict[str, str] = {}

    def workload_token(self, audience: str, **claims: Any) -> str:
        facts = {"iss": ISSUER, "sub": SUBJECT, "aud": audience, "exp": time.time() + 300, **claims}
        return self._issue(jwt.encode(facts, self._key, algorithm="RS256"), SUBJECT)

    def get(self, path: str, headers: Any) -> tuple[int, Any]:
        parts = urlsplit(path)
        if parts.path == "/token":
            return 200, self.workload_token(parse_qs(parts.query)["audience"][0])
        caller = self.issued.get(headers.get("Authorization", "").removeprefix("Bearer "))
        return (200, {"sub": caller}) if caller in (GCP_ACCOUNT, AZURE_CLIENT) else (401, {"error": "invalid_token"})

    def post(self, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        if path == f"/v1/projects/-/serviceAccounts/{GCP_ACCOUNT}:generateAccessToken":
            return self._impersonate(headers, json.loads(body))
        form = dict(parse_qsl(body.decode()))
        if path == "/v1/token":
            return self._exchange(form)
        return self._client_credentials(form) if path == f"/{AZURE_TENANT}/oauth2/v2.0/token" else (404, {})

    def _exchange(self, form: dict[str, str]) -> tuple[int, Any]:
        audience, kind = SETTINGS["GCP_AUDIENCE"], "urn:ietf:params:oauth:token-type"
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange":
            return 400, {"error": "unsupported_grant_type"}
        if form.get("audience") != audience or not form.get("scope"):
            return 400, {"error": "invalid_target"}
        types = (form.get("subject_token_type"), form.get("requested_token_type"))
        if types != (f"{kind}:jwt", f"{kind}:access_token"):
            return 400, {"error": "invalid_request"}
        if not self._is_trusted(form.get("subject_token", ""), f"https:{audience}"):
            return 400, {"error": "invalid_grant"}
        return 200, self._bearer("pool")

    def _impersonate(self, headers: Any, body: dict[str, Any]) -> tuple[int, Any]:
        if self.issued.get(headers.get("Authorization", "").removeprefix("Bearer ")) != "pool":
            return 401, {"error": {"status": "UNAUTHENTICATED"}}
        seconds = int(body["lifetime"].removesuffix("s"))
        if not (0 < seconds <= 3600 and body["scope"]):
            return 400, {"error": {"status": "INVALID_ARGUMENT"}}
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        return 200, {"accessToken": self._issue(secrets.token_urlsafe(40), GCP_ACCOUNT), "expireTime": until}

    def _client_credentials(self, form: dict[str, str]) -> tuple[int, Any]:
        if form.get("grant_type") != "client_credentials" or not form.get("scope", "").endswith("/.default"):
            return 400, {"error": "invalid_request"}
        if form.get("client_id") != AZURE_CLIENT:
            return 400, {"error": "unauthorized_client"}
        is_jwt = form.get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        if not is_jwt or not self._is_trusted(form.get("client_assertion", ""), "api://AzureADTokenExchange"):
            return 401, {"error": "invalid_client"}
        return 200, self._bearer(AZURE_CLIENT)

    def _is_trusted(self, token: str, audience: str) -> bool:
        try:
            facts = jwt.decode(token, self._key.public_key(), ["RS256"], audience=audience, issuer=ISSUER)
        except jwt.InvalidTokenError:
            return False
        return bool(facts["sub"] == SUBJECT)

    def _bearer(self, caller: str) -> dict[str, Any]:
        return {
            "access_token": self._issue(secrets.token_urlsafe(40), caller),
            "token_type": "Bearer",
            "expires_in": 900,
        }

    def _issue(self, secret: str, caller: str) -> str:
        self.issued[secret] = caller
        return secret


@contextmanager
def token_services() -> Iterator[tuple[TokenServices, str]]:
    services = TokenServices()

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(*services.get(self.path, self.headers))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(*services.post(self.path, self.headers, body))

        def _answer(self, status: int, value: Any) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write((value if isinstance(value, str) else json.dumps(value)).encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as door:
        thread = threading.Thread(target=door.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield services, f"http://127.0.0.1:{door.server_address[1]}"
        finally:
            door.shutdown()
            thread.join()


@contextmanager
def clouds() -> Iterator[tuple[TokenServices, dict[str, str]]]:
    """The services, and the environment in which a runner finds them."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it tells of every request
    with warnings.catch_warnings(action="ignore"):  # of parts of moto that are not needed
        from moto.server import ThreadedMotoServer  # noqa: PLC0415 - as above

    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    aws = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{moto.get_host_and_port()[1]}", "AWS_DEFAULT_REGION": "eu-west-1"}
    httpx.post(f"{aws['AWS_ENDPOINT_URL']}/moto-api/reset-auth", content=str(SETUP_CALLS)).raise_for_status()
    try:
        with token_services() as (services, url):
            yield (
                services,
                aws
                | _aws_user(aws["AWS_ENDPOINT_URL"])
                | {
                    "WORKLOAD_TOKEN_URL": f"{url}/token",
                    **dict.fromkeys(("GCP_USERINFO_URL", "AZURE_USERINFO_URL"), f"{url}/userinfo"),
                    "GCP_STS_URL": f"{url}/v1/token",
                    "GCP_IAM_URL": url,
                    "AZURE_TENANT_ID": AZURE_TENANT,
                    "AZURE_AUTHORITY_HOST": url,
                },
            )
    finally:
        moto.stop()


def _aws_user(url: str) -> dict[str, str]:
    """A user who may do nothing but assume the role, and a role that may look around."""
    anybody = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "eu-west-1"}
    iam = boto3.client("iam", endpoint_url=url, **anybody)
    iam.create_user(UserName="runner")
    iam.put_user_policy(UserName="runner", PolicyName="may", PolicyDocument=_policy(MAY["runner"]))
    iam.create_role(
        RoleName="deployer", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
    )
    iam.put_role_policy(RoleName="deployer", PolicyName="may", PolicyDocument=_policy(MAY["deployer"]))
    key = iam.create_access_key(UserName="runner")["AccessKey"]
    return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}


def _policy(actions: list[str]) -> str:
    statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
