"""Signing in at an identity provider: authorization code flow with PKCE, state and nonce. Needs the extra `oidc`."""

import hmac
import logging
import secrets
from dataclasses import dataclass
from typing import Any

from fenceline.model.identity import Identity
from fenceline.server.oidc import OidcTokens, OidcUnusable
from fenceline.server.problems import Problem
from fenceline.server.server_settings import OidcClient

log = logging.getLogger("fenceline.server")

TIMEOUT_SECONDS = 10.0
#: How long a person may take to sign in at the provider.
ATTEMPT_SECONDS = 600
COOKIE = "fenceline-oidc"
PATH = "/v1/session/oidc"


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """What only this browser knows until it comes back: kept in its own cookie, never in logs or URLs."""

    state: str
    nonce: str
    verifier: str

    @classmethod
    def new(cls) -> "LoginAttempt":
        return cls(*(secrets.token_urlsafe(32) for _ in range(3)))

    @classmethod
    def read(cls, text: str | None) -> "LoginAttempt | None":
        parts = (text or "").split(".")
        return cls(*parts) if len(parts) == 3 and all(parts) else None  # noqa: PLR2004 - its three fields

    def text(self) -> str:
        return f"{self.state}.{self.nonce}.{self.verifier}"


class OidcLogin:
    def __init__(self, client: OidcClient, tokens: OidcTokens) -> None:
        try:
            from authlib.integrations import httpx_client  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise OidcUnusable("signing in by OIDC needs authlib and httpx2: pip install 'fenceline[oidc]'") from error
        self._client = client
        self._tokens = tokens
        self._make: Any = httpx_client.AsyncOAuth2Client

    def _session(self, redirect_uri: str) -> Any:
        return self._make(
            self._client.client_id,
            self._client.client_secret,
            redirect_uri=redirect_uri,
            scope="openid profile email",
            code_challenge_method="S256",
            timeout=TIMEOUT_SECONDS,
        )

    async def start(self, attempt: LoginAttempt, redirect_uri: str) -> str:
        """Where to send the browser."""
        async with self._session(redirect_uri) as session:
            url, _state = session.create_authorization_url(
                self._client.authorize_url, state=attempt.state, nonce=attempt.nonce, code_verifier=attempt.verifier
            )
        return str(url)

    async def finish(
        self, attempt: LoginAttempt | None, redirect_uri: str, *, state: str | None, code: str | None
    ) -> Identity:
        """Who came back. Raises Problem `unauthenticated`."""
        if attempt is None or not code or not hmac.compare_digest((state or "").encode(), attempt.state.encode()):
            raise Problem("unauthenticated", "this sign-in was not begun in this browser, or too long ago: begin again")
        async with self._session(redirect_uri) as session:
            try:
                answer = await session.fetch_token(self._client.token_url, code=code, code_verifier=attempt.verifier)
            except Exception as error:  # anything that the HTTP client or the provider raises
                log.warning("the identity provider gave no token: %s", error)
                raise Problem("unauthenticated", "the identity provider did not confirm the sign-in") from error
        identity = await self._tokens.identify(str(answer.get("id_token", "")), nonce=attempt.nonce)
        if identity is None:
            raise Problem("unauthenticated", "the identity provider names no role or tenant that may sign in here")
        return identity
