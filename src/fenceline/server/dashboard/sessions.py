"""Sessions: opened with a token, a one-time code or by an identity provider; kept in the database like tokens."""

from datetime import datetime

from fastapi import Request

from fenceline.database import calls
from fenceline.model.identity import Identity
from fenceline.model.secret import PREFIX, hash_token, new_token
from fenceline.runtime.database import Database
from fenceline.server.auth import Authenticator
from fenceline.server.dashboard import origin
from fenceline.server.problems import Problem
from fenceline.server.server_settings import ServerSettings
from fenceline.server.tenant_turns import TenantDatabase

#: How long a one-time code is valid.
CODE_SECONDS = 600.0


class Sessions:
    def __init__(self, settings: ServerSettings, database: TenantDatabase, authenticator: Authenticator) -> None:
        self._settings = settings
        self._database = database
        self._authenticator = authenticator

    async def identify(self, request: Request, secret: str) -> Identity:
        """The person who uses the browser. Raises Problem `unauthenticated`, `forbidden`."""
        origin.check_page(request, self._settings)
        origin.check_change(request, secret)
        identity = await self._authenticator.find_session(hash_token(secret))
        if identity is None:
            raise Problem("unauthenticated", "the session has ended: sign in again")
        return identity

    async def open(self, *, token: str | None = None, code: str | None = None, foreign: Identity | None = None) -> str:
        """The secret of a new session, opened with one of these. `foreign`: identified by an identity provider.

        Raises Problem `unauthenticated`.
        """
        if token is not None and not token.startswith(PREFIX):
            # A token of the identity provider: checked once, now; the session keeps the identity that it names.
            token, foreign = None, await self._authenticator.identify(f"Bearer {token}")
        secret, session_hash = new_token()
        opened = await self._database.call(
            calls.tokens.open_session(
                session_hash,
                seconds=self._settings.session_seconds,
                token_hash=None if token is None else hash_token(token),
                code_hash=None if code is None else hash_token(code),
                foreign=foreign,
            )
        )
        if opened is None:
            raise Problem("unauthenticated", "the token or the link is unknown, used up, expired or revoked")
        return secret

    async def close(self, secret: str) -> None:
        session_hash = hash_token(secret)
        await self._database.call(calls.tokens.close_session(session_hash))
        self._authenticator.forget(session_hash)


async def make_code(database: Database | TenantDatabase, token_hash: bytes) -> tuple[str, datetime]:
    """A code that opens one session for the holder of a token, and when it expires."""
    code, code_hash = new_token()
    return code, await database.call(calls.tokens.create_login_code(code_hash, token_hash, seconds=CODE_SECONDS))
