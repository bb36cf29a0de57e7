"""How a server runs."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcClient:
    """How people sign in at the provider: this server as its client, with the authorization code flow and PKCE."""

    client_id: str
    client_secret: str
    authorize_url: str
    token_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """Tokens of an identity provider, besides our own: JWTs whose signature, issuer and audience are checked.

    The role and the tenant come from claims; a token whose role is unknown here is refused. The keys are read from a
    file (a JWK set), anew when the file changes.

    roles: those that its tokens may have; None: every one that is bound to a tenant.
    client: lets people sign in to the dashboard there; None: tokens only.
    """

    jwks_file: Path
    issuer: str
    audience: str
    role_claim: str = "fenceline_role"
    tenant_claim: str = "fenceline_tenant"
    actor_claim: str = "sub"
    roles: frozenset[str] | None = None
    client: OidcClient | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSettings:
    """What a connection may cost before anybody knows whose it is.

    max_header_bytes: request line and headers; also what frames a chunked body.
    header_seconds, body_seconds: until all of it has come. idle_seconds: silence between two requests.
    write_seconds: how long a client may leave its answer lying.
    max_connections, connections_per_address: at a time; an IPv6 site is one address, a trusted proxy is none.
    trusted_proxies: addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
    """

    max_header_bytes: int = 32 * 1024
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    idle_seconds: float = 15.0
    write_seconds: float = 30.0
    max_connections: int = 5000
    connections_per_address: int = 1024
    trusted_proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_positive(
            self,
            "max_header_bytes", "header_seconds", "body_seconds", "idle_seconds", "write_seconds", "max_connections",
            "connections_per_address",
        )  # fmt: skip
        for text in self.trusted_proxies:
            try:
                ipaddress.ip_network(text, strict=False)
            except ValueError as error:
                raise ValueError(f"trusted proxy {text!r} is neither an address nor a network") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """PEM files. client_ca: whoever runs jobs must then show a certificate that this authority has signed."""

    cert: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """`fenceline server` flags.

    requests_per_second: per token; more is answered 429 `limited` after a burst of as many again.
    refusals_per_second: 401 and 403 from one address; more, after a burst of ten times as many, is 429; 0: no limit.
    lock_seconds, statement_seconds: how long a statement may wait for a lock, and take in all; then 503 `busy`.
    tenant_connections: how many of the `pool_size` connections one tenant may use at a time; None: two fifths.
    tenant_requests_per_second: the same for all tokens of a tenant together; 0: no such limit.
    trigger_body_bytes, trigger_body_seconds: of a request to a trigger, which is read before anybody knows whose it is.
    token_cache_seconds: how long the answer about a token is remembered, so how late a revocation may take effect.
    streams_per_token: open at a time; one more is answered 429 `limited`.
    stream_seconds: how long a stream stays open; clients come back where they stopped.
    hooks_allow_http: let outgoing webhooks go to http:// addresses.
    hooks_allow_private: networks that they may go to although they are not public.
    deliver: make the deliveries of outgoing webhooks here.
    runner_lease_seconds: a runner that is silent for so long is offline, and its jobs go to others.
    first_token_file: where the token of the very first start is written; None: see `first_token`.
    no_auth: everybody is platform_admin; on loopback only.
    session_seconds: how long a person stays signed in at most.
    hosts: the names under which browsers find this server, besides loopback and `host`.
    origins: pages of these origins may sign in and read with the session of the person before them.
    """

    host: str = "127.0.0.1"
    port: int = 8321
    no_auth: bool = False
    first_token_file: Path | None = None
    pool_size: int = 10
    lock_seconds: float = 2.0
    statement_seconds: float = 10.0
    tenant_connections: int | None = None
    max_body_bytes: int = 4 * 1024 * 1024
    refusals_per_second: float = 200.0
    trigger_body_bytes: int = 256 * 1024
    trigger_body_seconds: float = 10.0
    requests_per_second: float = 5000.0
    tenant_requests_per_second: float = 0.0
    token_cache_seconds: float = 1.0
    streams_per_token: int = 2000
    stream_seconds: float = 3600.0
    private_metrics: bool = False
    access_log: bool = False
    maintain: bool = True
    deliver: bool = True
    hooks_allow_http: bool = False
    hooks_allow_private: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    runner_lease_seconds: float = 60.0
    session_seconds: float = 12 * 3600.0
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    oidc: OidcSettings | None = field(default=None)
    edge: EdgeSettings = field(default_factory=EdgeSettings)
    tls: TlsSettings | None = field(default=None)

    def __post_init__(self) -> None:
        if self.no_auth and not self.is_loopback:
            raise ValueError(
                f"without authentication the server listens on loopback only, not on {self.host}: leave out --no-auth, "
                "or use --host 127.0.0.1"
            )
        _check_positive(
            self,
            "pool_size", "lock_seconds", "statement_seconds",
            "max_body_bytes", "trigger_body_bytes", "trigger_body_seconds", "requests_per_second",
            "streams_per_token", "stream_seconds", "runner_lease_seconds", "session_seconds",
        )  # fmt: skip
        if self.tenant_connections is not None and not 0 < self.tenant_connections <= self.pool_size:
            raise ValueError(f"tenant_connections {self.tenant_connections} is out of range: use 1 to {self.pool_size}")
        if self.refusals_per_second < 0:
            raise ValueError(f"refusals_per_second {self.refusals_per_second} is out of range: use 0 or more")
        if self.tenant_requests_per_second < 0:
            raise ValueError(
                f"tenant_requests_per_second {self.tenant_requests_per_second} is out of range: use 0 or more"
            )
        if not 0 <= self.token_cache_seconds <= 2:  # noqa: PLR2004 - the promise about revocation
            raise ValueError(f"token_cache_seconds {self.token_cache_seconds} is out of range: use 0 to 2")

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)


def _check_positive(settings: object, *names: str) -> None:
    for name in names:
        if getattr(settings, name) <= 0:
            raise ValueError(f"{name} {getattr(settings, name)} is out of range: use more than 0")


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
