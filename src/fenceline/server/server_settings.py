"""Settings of a server. A field with a `Flag` is also a flag of `fenceline server`, a variable and a config key."""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Flag:
    """`name`: if the flag's differs from the field's. `read` converts the text, or the file if `is_file`; lists are
    separated by commas.
    """

    help: str
    name: str | None = None
    read: Callable[[Any], Any] | None = None
    is_file: bool = False
    metavar: str | None = None


def read_networks(text: str) -> tuple[Network, ...]:
    """Networks separated by commas. Raises ValueError."""
    networks = []
    for part in text.replace(",", " ").split():
        try:
            networks.append(ipaddress.ip_network(part))
        except ValueError as error:
            raise ValueError(f"--hooks-allow-private {part!r} is not a network: use 10.0.0.0/8 or fd00::/8") from error
    return tuple(networks)


def _read_secret(path: Path) -> str:
    return path.read_text().strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcClient:
    """How people sign in at the provider: authorization code flow with PKCE, with this server as the client."""

    client_id: Annotated[str, Flag("This server's client id at the provider, for sign-in to the dashboard.")]
    client_secret: Annotated[
        str,
        Flag(
            "File with the secret that the identity provider issued for the client id.",
            name="client_secret_file",
            read=_read_secret,
            is_file=True,
        ),
    ]
    authorize_url: Annotated[str, Flag("URL where people sign in at the provider.")]
    token_url: Annotated[str, Flag("URL where the provider exchanges codes for tokens.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """Tokens of an identity provider besides our own: JWTs whose signature, issuer and audience are checked.

    The role and the tenant come from claims; a token with an unknown role is refused. The keys are in a file (a JWK
    set), which is reloaded when it changes. `client` lets people sign in to the dashboard with the provider.
    """

    jwks_file: Annotated[Path, Flag("File with the identity provider's keys (JWKS).", name="jwks")]
    issuer: Annotated[str, Flag("Required `iss` of the provider's tokens.")]
    audience: Annotated[str, Flag("Required `aud` of the provider's tokens.")]
    role_claim: Annotated[str, Flag("JWT claim that holds the caller's role.")] = "fenceline_role"
    tenant_claim: Annotated[str, Flag("JWT claim that holds the caller's tenant.")] = "fenceline_tenant"
    actor_claim: str = "sub"
    roles: Annotated[
        frozenset[str] | None,
        Flag("Roles its tokens may have, separated by commas; default: all that are bound to a tenant."),
    ] = None
    client: OidcClient | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSettings:
    """Limits on a connection before the client is known. A trusted proxy stands for many addresses."""

    trusted_proxies: Annotated[
        tuple[str, ...],
        Flag(
            "Proxies whose X-Forwarded-For is trusted: addresses or networks, separated by commas.",
            name="forwarded_allow_ips",
        ),
    ] = ()
    #: Includes the framing of a chunked body.
    max_header_bytes: Annotated[int, Flag("Largest request line and headers; more is answered 431.")] = 32 * 1024
    header_seconds: Annotated[float, Flag("Seconds for headers to arrive, and for a TLS handshake.")] = 10.0
    body_seconds: Annotated[float, Flag("Seconds within which a request body must arrive; then 408.")] = 60.0
    idle_seconds: Annotated[float, Flag("Seconds a connection may be idle between two requests.")] = 15.0
    write_seconds: Annotated[float, Flag("Seconds for a client to read its answer.")] = 30.0
    max_connections: Annotated[int, Flag("Most client connections at a time; more are answered 503.")] = 5000
    connections_per_address: Annotated[
        int, Flag("Most connections at a time from one address; an IPv6 /64 counts as one.")
    ] = 1024

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
    cert: Annotated[Path, Flag("Use TLS with this certificate and its chain (PEM); reloaded when it changes.")]
    key: Annotated[Path, Flag("Private key of the certificate (PEM).")]
    client_ca: Annotated[
        Path | None, Flag("Require runners to present a client certificate from this authority (PEM).")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    host: Annotated[str, Flag("Address to listen on; 0.0.0.0 for all interfaces.")] = "127.0.0.1"
    port: Annotated[int, Flag("TCP port to listen on, for HTTP and the dashboard.")] = 8321
    no_auth: bool = False  # everybody is platform_admin; on loopback only
    first_token_file: Path | None = None  # for the token of the very first start; None: see `run.hand_over`
    #: After a burst of as many again.
    requests_per_second: Annotated[float, Flag("Most requests per second per token; more is answered 429.")] = 5000.0
    max_body_bytes: Annotated[int, Flag("Largest request body; more is answered 413.")] = 4 * 1024 * 1024
    tenant_requests_per_second: Annotated[
        float, Flag("Most requests per second for all tokens of a tenant; 0: no limit.")
    ] = 0.0
    #: After a burst of ten times as many.
    refusals_per_second: Annotated[
        float, Flag("Most refusals (401, 403) per second from one address; more is answered 429. 0: no limit.")
    ] = 20.0
    #: Smaller than other bodies, because it is read before the sender is known.
    trigger_body_bytes: Annotated[int, Flag("Larger requests to triggers are answered 413.")] = 256 * 1024
    trigger_body_seconds: Annotated[
        float, Flag("Seconds within which a request to a trigger must arrive; then 408.")
    ] = 10.0
    edge: EdgeSettings = field(default_factory=EdgeSettings)
    tls: TlsSettings | None = None
    hosts: Annotated[
        tuple[str, ...],
        Flag(
            "Host names of this server for browsers, besides loopback and --host; separated by commas.", metavar="NAMES"
        ),
    ] = ()
    #: With the session of the person who uses the browser.
    origins: Annotated[
        tuple[str, ...],
        Flag(
            "Origins whose pages may sign in and read, such as https://app.example.com; separated by commas.",
            metavar="NAMES",
        ),
    ] = ()
    access_log: Annotated[bool, Flag("Log a line for every request.")] = False
    pool_size: Annotated[
        int, Flag("Size of the pool of database connections; requests wait for a free one.", name="connections")
    ] = 10
    tenant_connections: Annotated[
        int | None, Flag("Most of these connections for one tenant; default: two fifths.")
    ] = None
    lock_seconds: Annotated[float, Flag("Longest wait for a lock; then 503 `busy`.")] = 2.0
    statement_seconds: Annotated[float, Flag("Longest statement; then 503 `busy`.")] = 10.0
    #: Its jobs then go to others.
    runner_lease_seconds: Annotated[float, Flag("Seconds until a silent runner is offline.", name="runner_lease")] = (
        60.0
    )
    streams_per_token: Annotated[int, Flag("Most open live streams per token; one more is answered 429.")] = 2000
    hooks_allow_http: Annotated[bool, Flag("Let outgoing webhooks go to http:// addresses.")] = False
    hooks_allow_private: Annotated[
        tuple[Network, ...],
        Flag(
            "Private networks that outgoing webhooks may reach, such as 10.0.0.0/8,fd00::/8.",
            read=read_networks,
            metavar="NETWORKS",
        ),
    ] = ()
    private_metrics: Annotated[bool, Flag("Require a token with workers:view for /metrics.")] = False
    oidc: OidcSettings | None = None
    token_cache_seconds: float = 1.0  # how late the revocation of a token may take effect
    stream_seconds: float = 3600.0  # how long a stream stays open; clients reconnect where they stopped
    session_seconds: float = 12 * 3600.0  # how long a person stays signed in at most
    maintain: bool = True
    deliver: bool = True  # deliver outgoing webhooks

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
        for name in ("refusals_per_second", "tenant_requests_per_second"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} {getattr(self, name)} is out of range: use 0 or more")
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
