"""Who speaks: bearer tokens of ours and sessions, looked up by their SHA-256, or JWTs of an identity provider.

The answer about a token is remembered for `token_cache_seconds`, so that authentication does not cost a statement per
request; a revocation takes effect within that time. Unknown tokens are remembered too.
"""

import asyncio
import time
from collections import OrderedDict
from typing import Protocol

from fenceline.database import calls
from fenceline.database.call import Call
from fenceline.model.identity import Identity
from fenceline.model.secret import PREFIX, hash_token
from fenceline.runtime.database import Database
from fenceline.server.problems import Problem

MAX_REMEMBERED = 10_000
#: Of a bearer token, whatever it is: more is no token.
MAX_BYTES = 16_384

EVERYBODY = Identity(
    actor="anonymous",
    role="platform_admin",
    tenant="default",
    permissions=frozenset({"*"}),
    own_jobs=False,
    all_tenants=True,
)


class ForeignTokens(Protocol):
    """Tokens that others issue."""

    async def identify(self, token: str) -> Identity | None: ...


class Authenticator:
    def __init__(self, database: Database, *, cache_seconds: float, foreign: ForeignTokens | None = None) -> None:
        self._database = database
        self._cache_seconds = cache_seconds
        self._foreign = foreign
        self._known: OrderedDict[bytes, tuple[float, Identity | None]] = OrderedDict()
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
        """Who a token of ours speaks for, at most `token_cache_seconds` ago; None when it is not valid."""
        return await self._find(token_hash, calls.tokens.identify_token(token_hash))

    async def find_session(self, session_hash: bytes) -> Identity | None:
        """The same of a session."""
        return await self._find(session_hash, calls.tokens.identify_session(session_hash))

    def forget(self, token_hash: bytes) -> None:
        """Ask anew at the next request with it."""
        self._known.pop(token_hash, None)

    async def _find(self, token_hash: bytes, call: Call[Identity | None]) -> Identity | None:
        known = self._known.get(token_hash)
        if known is not None and time.monotonic() - known[0] < self._cache_seconds:
            return known[1]
        asking = self._asking.get(token_hash)
        if asking is None:
            # One statement however many requests come with the token at this moment; theirs may be cancelled, not it.
            asking = self._asking[token_hash] = asyncio.create_task(self._ask(token_hash, call))
        return await asyncio.shield(asking)

    async def _ask(self, token_hash: bytes, call: Call[Identity | None]) -> Identity | None:
        try:
            asked = time.monotonic()
            identity = await self._database.call(call)
            self._known[token_hash] = (asked, identity)
            self._known.move_to_end(token_hash)
            while len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
            return identity
        finally:
            del self._asking[token_hash]
