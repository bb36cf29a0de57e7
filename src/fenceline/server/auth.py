"""Identifies callers: by our own tokens and sessions, looked up by their SHA-256, or by JWTs of an identity provider.

Who a token belongs to is cached for `token_cache_seconds`, so that not every request costs a statement; a revocation
takes effect within that time. Unknown tokens are cached too.
"""

import asyncio
import time

from fenceline.database import calls
from fenceline.database.call import Call
from fenceline.model.identity import Identity
from fenceline.model.secret import PREFIX, hash_token
from fenceline.runtime.database import Database
from fenceline.server.limits import Recent
from fenceline.server.oidc import OidcTokens
from fenceline.server.problems import Problem

#: The longest bearer token of any kind.
MAX_BYTES = 16_384

EVERYBODY = Identity(
    actor="anonymous",
    role="platform_admin",
    tenant="default",
    permissions=frozenset({"*"}),
    own_jobs=False,
    all_tenants=True,
)


class Authenticator:
    def __init__(self, database: Database, *, cache_seconds: float, foreign: OidcTokens | None = None) -> None:
        self._database = database
        self._cache_seconds = cache_seconds
        self._foreign = foreign
        self._known: Recent[bytes, tuple[float, Identity | None]] = Recent()
        self._asking: dict[bytes, asyncio.Task[Identity | None]] = {}

    async def identify(self, authorization: str | None) -> Identity:
        """The bearer of an `Authorization` header. Raises Problem `unauthenticated`."""
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise Problem("unauthenticated", "send a token as `Authorization: Bearer …`")
        identity = None
        if token.isascii() and len(token) <= MAX_BYTES:
            if token.startswith(PREFIX):
                identity = await self.find(hash_token(token))
            elif self._foreign is not None:
                identity = await self._foreign.identify(token)
        if identity is None:
            raise Problem("unauthenticated", "the token is unknown, expired or revoked")
        return identity

    async def find(self, token_hash: bytes) -> Identity | None:
        """Whose token it is, or was at most `token_cache_seconds` ago; None if it is not valid."""
        return await self._find(token_hash, calls.tokens.identify_token(token_hash))

    async def find_session(self, session_hash: bytes) -> Identity | None:
        """The same for a session."""
        return await self._find(session_hash, calls.tokens.identify_session(session_hash))

    def forget(self, token_hash: bytes) -> None:
        """Look it up again at the next request."""
        self._known.pop(token_hash, None)

    async def _find(self, token_hash: bytes, call: Call[Identity | None]) -> Identity | None:
        known = self._known.get(token_hash)
        if known is not None and time.monotonic() - known[0] < self._cache_seconds:
            return known[1]
        asking = self._asking.get(token_hash)
        if asking is None:
            # One statement for all requests that come with the token now; cancelling one of them does not cancel it.
            asking = self._asking[token_hash] = asyncio.create_task(self._ask(token_hash, call))
        return await asyncio.shield(asking)

    async def _ask(self, token_hash: bytes, call: Call[Identity | None]) -> Identity | None:
        try:
            started = time.monotonic()
            identity = await self._database.call(call)
            self._known[token_hash] = (started, identity)
            return identity
        finally:
            del self._asking[token_hash]
