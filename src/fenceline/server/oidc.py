"""Tokens of an identity provider: JWTs, checked against the keys in a file. Needs the extra `oidc`.

Role and tenant come from claims, the role's permissions from our database. The actor has the prefix `oidc:`, which no
name of our own tokens can have.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import Mapping
from typing import Any, TypeGuard

from fenceline.database import calls
from fenceline.errors import FencelineError
from fenceline.model.identity import Identity
from fenceline.runtime.database import Database
from fenceline.server.server_settings import OidcSettings

log = logging.getLogger("fenceline.server")

#: Public-key signatures only: neither secrets shared with the provider (HS…) nor unsigned tokens.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
LEEWAY_SECONDS = 30
REMEMBER_SECONDS = 1.0
NAME = re.compile(r"[a-z0-9_.-]{1,64}")
ACTOR = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")


class OidcUnusable(FencelineError):
    """The extra `oidc` is not installed, or the file with the keys cannot be read."""


class OidcTokens:
    def __init__(self, settings: OidcSettings, database: Database) -> None:
        try:
            import jwt  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise OidcUnusable("OIDC needs the package pyjwt: pip install 'fenceline[oidc]'") from error
        self._jwt = jwt
        self._settings = settings
        self._database = database
        self._keys: dict[str | None, Any] = {}
        self._read_at: float | None = None
        self._roles: dict[str, tuple[float, dict[str, Any] | None]] = {}
        self._load_keys()

    async def identify(self, token: str, nonce: str | None = None) -> Identity | None:
        """`nonce`: what the token of a sign-in must also contain."""
        claims = await asyncio.to_thread(self._check, token)
        if claims is None or (nonce is not None and claims.get("nonce") != nonce):
            return None
        return await self._identity(claims)

    def _check(self, token: str) -> Mapping[str, Any] | None:
        """The claims of a valid token, else None."""
        try:
            self._load_keys()
            header = self._jwt.get_unverified_header(token)
            key = self._keys.get(header.get("kid"))
            if key is None:
                return None
            claims: Mapping[str, Any] = self._jwt.decode(
                token,
                key=key,
                algorithms=ALGORITHMS,
                issuer=self._settings.issuer,
                audience=self._settings.audience,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", self._settings.actor_claim]},
            )
        except self._jwt.PyJWTError as error:
            log.info("a JWT was refused: %s", error)
            return None
        return claims

    async def _identity(self, claims: Mapping[str, Any]) -> Identity | None:
        role_name, actor = claims.get(self._settings.role_claim), claims.get(self._settings.actor_claim)
        tenant = claims.get(self._settings.tenant_claim, "default")
        if not (_fits(role_name, NAME) and _fits(actor, ACTOR) and _fits(tenant, NAME)):
            log.info("a JWT was refused: its claims name no role, actor or tenant that could be one")
            return None
        role = await self._role(role_name)
        if role is None or not self._may_be_given(role):
            log.info("a JWT was refused: role %s does not exist, or is not for tokens of the provider", role_name)
            return None
        permissions = frozenset(role["permissions"])
        return Identity(
            actor=f"oidc:{actor}",
            role=role_name,
            tenant=tenant,
            permissions=permissions,
            own_jobs=role["own_jobs"] and "jobs:read_all" not in permissions,
            all_tenants=role["all_tenants"],
        )

    def _may_be_given(self, role: Mapping[str, Any]) -> bool:
        """The provider cannot grant everything by itself: roles that cross tenants must be allowed by name."""
        allowed = self._settings.roles
        return not role["all_tenants"] if allowed is None else role["name"] in allowed

    async def _role(self, name: str) -> dict[str, Any] | None:
        known = self._roles.get(name)
        if known is None or time.monotonic() - known[0] > REMEMBER_SECONDS:
            found = await self._database.call(calls.tokens.list_roles(name))
            known = (time.monotonic(), found[0] if found else None)
            if known[1] is not None:
                self._roles[name] = known
        return known[1]

    def _load_keys(self) -> None:
        """Read the file if it has changed, so that a rotation of keys needs no restart."""
        path = self._settings.jwks_file
        try:
            written = path.stat().st_mtime
            if written == self._read_at:
                return
            keys = self._jwt.PyJWKSet.from_dict(json.loads(path.read_text()))
        except (OSError, ValueError, self._jwt.PyJWTError) as error:
            if self._read_at is None:
                raise OidcUnusable(f"the keys in {path} cannot be read: {error}") from error
            log.warning("the keys in %s cannot be read (%s): going on with those from before", path, error)
            return
        self._keys = {key.key_id: key for key in keys.keys}
        self._read_at = written


def _fits(claim: object, form: re.Pattern[str]) -> TypeGuard[str]:
    return isinstance(claim, str) and form.fullmatch(claim) is not None
