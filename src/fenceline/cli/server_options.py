"""Flags of the server that are about connections: their limits, proxies, TLS."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fenceline.cli.settings import setting_option

if TYPE_CHECKING:
    from fenceline.server.server_settings import EdgeSettings, OidcClient, TlsSettings

F = TypeVar("F", bound=Callable[..., Any])

#: Fields of EdgeSettings, with defaults and help.
_EDGE = {
    "max_header_bytes": (32 * 1024, "Largest request line and headers; more is answered 431."),
    "header_seconds": (10.0, "Seconds for headers to arrive, and for a TLS handshake."),
    "body_seconds": (60.0, "Seconds within which a request body must arrive; then 408."),
    "idle_seconds": (15.0, "Seconds a connection may be idle between two requests."),
    "write_seconds": (30.0, "Seconds for a client to read its answer."),
    "max_connections": (5000, "Most client connections at a time; more are answered 503."),
    "connections_per_address": (1024, "Most connections at a time from one address; an IPv6 /64 counts as one."),
}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def edge_options(command: F) -> F:
    for name, (default, text) in reversed(_EDGE.items()):
        flag = f"--{name.replace('_', '-')}"
        command = setting_option(flag, key=f"server.{name}", default=default, help=text)(command)
    return setting_option(
        "--forwarded-allow-ips",
        key="server.forwarded_allow_ips",
        default="",
        help="Proxies whose X-Forwarded-For is trusted: addresses or networks, separated by commas.",
    )(command)


def read_edge(given: Mapping[str, Any]) -> "EdgeSettings":
    """Raises ValueError."""
    from fenceline.server.server_settings import EdgeSettings

    proxies = read_names(given["forwarded_allow_ips"])
    return EdgeSettings(trusted_proxies=proxies, **{name: given[name] for name in _EDGE})


def browser_options(command: F) -> F:
    for flag, text in (
        ("--origins", "Origins whose pages may sign in and read, such as https://app.example.com;"),
        ("--hosts", "Host names of this server for browsers, besides loopback and --host;"),
    ):
        key = f"server.{flag.removeprefix('--')}"
        command = setting_option(flag, key=key, default="", metavar="NAMES", help=f"{text} separated by commas.")(
            command
        )
    return command


def read_names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def oidc_login_options(command: F) -> F:
    for name, text, kind in (
        ("token-url", "URL where the provider exchanges codes for tokens.", None),
        ("authorize-url", "URL where people sign in at the provider.", None),
        ("client-secret-file", "File with the secret that the identity provider issued for the client id.", _FILE),
        ("client-id", "This server's client id at the provider, for sign-in to the dashboard.", None),
    ):
        key = f"server.oidc_{name.replace('-', '_')}"
        command = setting_option(f"--oidc-{name}", key=key, type=kind, help=text)(command)
    return command


def read_oidc_login(given: Mapping[str, Any]) -> "OidcClient | None":
    """Raises ValueError."""
    from fenceline.server.server_settings import OidcClient

    names = ("client_id", "client_secret_file", "authorize_url", "token_url")
    client_id, secret_file, authorize_url, token_url = (given[f"oidc_{name}"] for name in names)
    if client_id is None:
        return None
    if secret_file is None or authorize_url is None or token_url is None:
        raise ValueError("--oidc-client-id takes --oidc-client-secret-file, --oidc-authorize-url and --oidc-token-url")
    return OidcClient(
        client_id=client_id,
        client_secret=secret_file.read_text().strip(),
        authorize_url=authorize_url,
        token_url=token_url,
    )


def tls_options(command: F) -> F:
    for name, text in (
        ("client-ca", "Require runners to present a client certificate from this authority (PEM)."),
        ("key", "Private key of the certificate (PEM)."),
        ("cert", "Use TLS with this certificate and its chain (PEM); reloaded when it changes."),
    ):
        key = f"server.tls_{name.replace('-', '_')}"
        command = setting_option(f"--tls-{name}", key=key, type=_FILE, help=text)(command)
    return command


def read_tls(given: Mapping[str, Any]) -> "TlsSettings | None":
    """Raises ValueError."""
    from fenceline.server.server_settings import TlsSettings

    cert, key, client_ca = given["tls_cert"], given["tls_key"], given["tls_client_ca"]
    if (cert is None) != (key is None) or (client_ca is not None and cert is None):
        raise ValueError("--tls-cert and --tls-key are given together, and --tls-client-ca with them")
    return None if cert is None else TlsSettings(cert=cert, key=key, client_ca=client_ca)
