"""Providers that exchange the workload's own token for temporary credentials of a cloud, without stored keys.

The platform gives that token to the process: a Kubernetes service account, a CI run, a metadata server. An exchange is
one or two requests, made here with httpx (extras `gcp`, `azure`): the clouds' own libraries are 27 MB each, block the
thread, and request more than is needed.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fenceline.client.credential_providers import UnknownIdentity

#: A file, read again for each exchange because the platform rotates it, or a function that gets the token.
TokenSource = str | Path | Callable[[], Awaitable[str]]

EMAIL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*")
GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
ERROR_CODE = re.compile(r"[A-Za-z_]{1,60}")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ExchangeRefused(UnknownIdentity):
    """A token service refused the exchange. The text has its error code and nothing else of the response."""


class GcpFederatedCredentials:
    """From Google Cloud by workload identity federation. Needs the extra `gcp`.

    The identity is the e-mail of a service account to impersonate, or the `audience` itself for the federated token.
    The handler finds `access_token` (a bearer token) and `expiration`.

    Args:
        audience: The provider, `//iam.googleapis.com/projects/…/locations/global/workloadIdentityPools/…/providers/…`.
        subject_token: The workload's own token, an OIDC token unless `subject_token_type` says otherwise.
        lifetime_seconds: Of an impersonated account's token; at most an hour, unless the organisation allows more.
    """

    def __init__(
        self,
        audience: str,
        subject_token: TokenSource,
        *,
        scopes: Sequence[str] = ("https://www.googleapis.com/auth/cloud-platform",),
        lifetime_seconds: int = 900,
        subject_token_type: str = "urn:ietf:params:oauth:token-type:jwt",  # noqa: S107 - a type of token
        sts_url: str = "https://sts.googleapis.com/v1/token",
        iam_url: str = "https://iamcredentials.googleapis.com",
        timeout_seconds: float = 30.0,
    ) -> None:
        self._audience = audience
        self._subject_token = subject_token
        self._scopes = list(scopes)
        self._lifetime_seconds = lifetime_seconds
        self._subject_token_type = subject_token_type
        self._sts_url = _safe_url(sts_url)
        self._iam_url = _safe_url(iam_url).rstrip("/")
        self._timeout_seconds = timeout_seconds

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> Mapping[str, Any]:  # noqa: ARG002 - the protocol
        if identity != self._audience and not EMAIL.fullmatch(identity):
            raise UnknownIdentity(f"{identity!r} is neither the e-mail of a service account nor the audience")
        federated = await self._exchange()
        return federated if identity == self._audience else await self._impersonate(identity, federated)

    async def _exchange(self) -> Mapping[str, Any]:
        answer = await _ask(
            self._sts_url,
            self._timeout_seconds,
            data={
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "audience": self._audience,
                "scope": " ".join(self._scopes),
                "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "subject_token": await _read_token(self._subject_token),
                "subject_token_type": self._subject_token_type,
            },
        )
        return _bearer(answer)

    async def _impersonate(self, email: str, federated: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = await _ask(
            f"{self._iam_url}/v1/projects/-/serviceAccounts/{email}:generateAccessToken",
            self._timeout_seconds,
            headers={"Authorization": f"Bearer {federated['access_token']}"},
            json={"scope": self._scopes, "lifetime": f"{self._lifetime_seconds}s"},
        )
        return {"access_token": answer["accessToken"], "expiration": datetime.fromisoformat(answer["expireTime"])}


class AzureFederatedCredentials:
    """From Microsoft Entra by a federated credential of an application or a managed identity. Needs the extra `azure`.

    The identity is the client id (a GUID). The handler finds `access_token` (a bearer token) and `expiration`. The
    defaults come from the variables that Azure's workload identity webhook sets: `AZURE_TENANT_ID`,
    `AZURE_FEDERATED_TOKEN_FILE`, `AZURE_AUTHORITY_HOST`.
    """

    def __init__(
        self,
        *,
        tenant_id: str | None = None,
        assertion: TokenSource | None = None,
        scope: str = "https://management.azure.com/.default",
        authority: str | None = None,
        timeout_seconds: float = 30.0,
    ) -> None:
        self._tenant_id = _given(tenant_id, "tenant_id", "AZURE_TENANT_ID")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", self._tenant_id):
            raise ValueError(f"tenant_id {self._tenant_id!r} must be a GUID or a domain")
        self._assertion = assertion or _given(None, "assertion", "AZURE_FEDERATED_TOKEN_FILE")
        self._scope = scope
        host = authority or os.environ.get("AZURE_AUTHORITY_HOST") or "https://login.microsoftonline.com"
        self._url = f"{_safe_url(host).rstrip('/')}/{self._tenant_id}/oauth2/v2.0/token"
        self._timeout_seconds = timeout_seconds

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> Mapping[str, Any]:  # noqa: ARG002 - the protocol
        if not GUID.fullmatch(identity):
            raise UnknownIdentity(f"{identity!r} is not a client id: use a GUID")
        answer = await _ask(
            self._url,
            self._timeout_seconds,
            data={
                "grant_type": "client_credentials",
                "client_id": identity,
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                "client_assertion": await _read_token(self._assertion),
                "scope": self._scope,
            },
        )
        return _bearer(answer)


def _given(value: str | None, name: str, variable: str) -> str:
    found = value or os.environ.get(variable)
    if not found:
        raise ValueError(f"{name} is missing: give it, or set {variable}")
    return found


def _safe_url(url: str) -> str:
    """Tokens travel in clear text on this machine only. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise ValueError(f"{url!r} must start with https://")
    return url


async def _read_token(source: TokenSource) -> str:
    if callable(source):
        return await source()
    return (await asyncio.to_thread(Path(source).read_text)).strip()


async def _ask(url: str, timeout_seconds: float, **request: Any) -> dict[str, Any]:
    """Raises ExchangeRefused, or httpx.TransportError if nobody answers."""
    import httpx  # noqa: PLC0415 - an extra

    async with httpx.AsyncClient(timeout=timeout_seconds) as client:
        response = await client.post(url, **request)
    if response.status_code != httpx.codes.OK:
        raise ExchangeRefused(
            f"{urlsplit(url).hostname} answered {response.status_code} {_error_code(response)}".strip()
        )
    answer: dict[str, Any] = response.json()
    return answer


def _error_code(response: Any) -> str:
    """The code of an OAuth error, or the status of one of Google's. The rest of the response may quote the request."""
    try:
        error = response.json()["error"]
        code = error if isinstance(error, str) else error["status"]
    except (ValueError, KeyError, TypeError):
        return ""
    return code if isinstance(code, str) and ERROR_CODE.fullmatch(code) else ""


def _bearer(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "access_token": answer["access_token"],
        "expiration": datetime.now(UTC) + timedelta(seconds=int(answer["expires_in"])),
    }
