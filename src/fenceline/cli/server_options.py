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
    "max_header_bytes": (32 * 1024, "Request line and headers; more is answered 431."),
    "header_seconds": (10.0, "For them to arrive, and for a TLS handshake."),
    "body_seconds": (60.0, "For a body to arrive."),
    "idle_seconds": (15.0, "Silence between two requests on a connection."),
    "write_seconds": (30.0, "For a client to take its answer."),
    "max_connections": (5000, "At a time, from everywhere."),
    "connections_per_address": (1024, "At a time, from one address; an IPv6 /64 is one."),
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
        ("--origins", "Origins whose pages may sign in and read with a session, as https://app.example.com."),
        ("--hosts", "Names under which browsers find this server, besides loopback and --host."),
    ):
        key = f"server.{flag.removeprefix('--')}"
        command = setting_option(flag, key=key, default="", metavar="NAMES", help=f"{text} With commas between.")(
            command
        )
    return command


def read_names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def oidc_login_options(command: F) -> F:
    for name, text, kind in (
        ("token-url", "Where the provider gives tokens for codes.", None),
        ("authorize-url", "Where the provider lets people sign in.", None),
        ("client-secret-file", "… and the file with its secret.", _FILE),
        ("client-id", "Lets people sign in to the dashboard at the provider: this server's name there.", None),
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
        ("client-ca", "Authority of client certificates: runners must show one (PEM)."),
        ("key", "The key of the certificate (PEM)."),
        ("cert", "Speak TLS with this certificate and its chain (PEM); read anew when it changes."),
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
