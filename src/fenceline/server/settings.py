"""How a server runs."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """Tokens of an identity provider, besides our own: JWTs whose signature, issuer and audience are checked.

    The role and the tenant come from claims; a token whose role is unknown here is refused. The keys are read from a
    file (a JWK set), anew when the file changes.
    """

    jwks_file: Path
    issuer: str
    audience: str
    role_claim: str = "fenceline_role"
    tenant_claim: str = "fenceline_tenant"
    actor_claim: str = "sub"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """`fenceline server` flags.

    requests_per_second: per token; more is answered 429 `limited` after a burst of as many again.
    token_cache_seconds: how long the answer about a token is remembered, so how late a revocation may take effect.
    streams_per_token: open at a time; one more is answered 429 `limited`.
    stream_seconds: how long a stream stays open; clients come back where they stopped.
    hooks_allow_http, hooks_allow_private: let outgoing webhooks go to http:// addresses, and into private networks.
    deliver: make the deliveries of outgoing webhooks here.
    runner_lease_seconds: a runner that is silent for so long is offline, and its jobs go to others.
    no_auth: everybody is platform_admin; on loopback only.
    """

    host: str = "127.0.0.1"
    port: int = 8321
    no_auth: bool = False
    pool_size: int = 10
    max_body_bytes: int = 4 * 1024 * 1024
    requests_per_second: float = 5000.0
    token_cache_seconds: float = 1.0
    streams_per_token: int = 2000
    stream_seconds: float = 3600.0
    private_metrics: bool = False
    maintain: bool = True
    deliver: bool = True
    hooks_allow_http: bool = False
    hooks_allow_private: bool = False
    runner_lease_seconds: float = 60.0
    oidc: OidcSettings | None = field(default=None)

    def __post_init__(self) -> None:
        if self.no_auth and not self.is_loopback:
            raise ValueError(
                f"without authentication the server listens on loopback only, not on {self.host}: leave out --no-auth, "
                "or use --host 127.0.0.1"
            )
        for what in (
            "pool_size",
            "max_body_bytes",
            "requests_per_second",
            "streams_per_token",
            "stream_seconds",
            "runner_lease_seconds",
        ):
            if getattr(self, what) <= 0:
                raise ValueError(f"{what} {getattr(self, what)} is out of range: use more than 0")
        if not 0 <= self.token_cache_seconds <= 2:  # noqa: PLR2004 - the promise about revocation
            raise ValueError(f"token_cache_seconds {self.token_cache_seconds} is out of range: use 0 to 2")

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
