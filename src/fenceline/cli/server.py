"""`fenceline server [APP]`."""

import asyncio
import logging
import os
from collections.abc import Coroutine
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import click

from fenceline.cli.options import dsn_option, not_over_http
from fenceline.cli.server_options import (
    browser_options,
    edge_options,
    oidc_login_options,
    read_edge,
    read_names,
    read_oidc_login,
    read_tls,
    tls_options,
)
from fenceline.cli.settings import setting_option


@click.command()
@click.argument("app", required=False)
@dsn_option
@not_over_http
@setting_option(
    "--host", key="server.host", default="127.0.0.1", help="Address to listen on; 0.0.0.0 for all interfaces."
)
@setting_option("--port", key="server.port", default=8321, help="TCP port to listen on, for HTTP and the dashboard.")
@click.option("--no-auth", is_flag=True, help="Let everybody on this machine do everything; on loopback only.")
@setting_option(
    "--first-token-file",
    key="server.first_token_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the token of the first start; default: the terminal, or .fenceline/first-token.",
)
@setting_option(
    "--requests-per-second",
    key="server.requests_per_second",
    default=5000.0,
    help="Most requests per second per token; more is answered 429.",
)
@setting_option(
    "--max-body-bytes",
    key="server.max_body_bytes",
    default=4 * 1024 * 1024,
    help="Largest request body; more is answered 413.",
)
@setting_option(
    "--tenant-requests-per-second",
    key="server.tenant_requests_per_second",
    default=0.0,
    help="Most requests per second for all tokens of a tenant; 0: no limit.",
)
@setting_option(
    "--refusals-per-second",
    key="server.refusals_per_second",
    default=20.0,
    help="Most refusals (401, 403) per second from one address; more is answered 429. 0: no limit.",
)
@setting_option(
    "--trigger-body-bytes",
    key="server.trigger_body_bytes",
    default=256 * 1024,
    help="Larger requests to triggers are answered 413.",
)
@setting_option(
    "--trigger-body-seconds",
    key="server.trigger_body_seconds",
    default=10.0,
    help="Seconds within which a request to a trigger must arrive; then 408.",
)
@edge_options
@tls_options
@browser_options
@setting_option("--access-log", key="server.access_log", is_flag=True, help="Log a line for every request.")
@setting_option(
    "--connections",
    key="server.connections",
    default=10,
    help="Size of the pool of database connections; requests wait for a free one.",
)
@setting_option(
    "--tenant-connections",
    key="server.tenant_connections",
    type=int,
    help="Most of these connections for one tenant; default: two fifths.",
)
@setting_option(
    "--lock-seconds", key="server.lock_seconds", default=2.0, help="Longest wait for a lock; then 503 `busy`."
)
@setting_option(
    "--statement-seconds", key="server.statement_seconds", default=10.0, help="Longest statement; then 503 `busy`."
)
@setting_option(
    "--runner-lease", key="server.runner_lease", default=60.0, help="Seconds until a silent runner is offline."
)
@setting_option(
    "--streams-per-token",
    key="server.streams_per_token",
    default=2000,
    help="Most open live streams per token; one more is answered 429.",
)
@setting_option(
    "--hooks-allow-http",
    key="server.hooks_allow_http",
    is_flag=True,
    help="Let outgoing webhooks go to http:// addresses.",
)
@setting_option(
    "--hooks-allow-private",
    key="server.hooks_allow_private",
    default="",
    metavar="NETWORKS",
    help="Private networks that outgoing webhooks may reach, such as 10.0.0.0/8,fd00::/8.",
)
@setting_option(
    "--private-metrics",
    key="server.private_metrics",
    is_flag=True,
    help="Require a token with workers:view for /metrics.",
)
@setting_option(
    "--oidc-jwks",
    key="server.oidc_jwks",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the identity provider's keys (JWKS).",
)
@setting_option("--oidc-issuer", key="server.oidc_issuer", help="Required `iss` of the provider's tokens.")
@setting_option("--oidc-audience", key="server.oidc_audience", help="Required `aud` of the provider's tokens.")
@setting_option(
    "--oidc-role-claim",
    key="server.oidc_role_claim",
    default="fenceline_role",
    help="JWT claim that holds the caller's role.",
)
@setting_option(
    "--oidc-tenant-claim",
    key="server.oidc_tenant_claim",
    default="fenceline_tenant",
    help="JWT claim that holds the caller's tenant.",
)
@setting_option(
    "--oidc-roles",
    key="server.oidc_roles",
    help="Roles its tokens may have, separated by commas; default: all that are bound to a tenant.",
)
@oidc_login_options
def server(
    app: str | None,
    dsn: str | None,
    host: str,
    port: int,
    no_auth: bool,
    first_token_file: Path | None,
    requests_per_second: float,
    tenant_requests_per_second: float,
    max_body_bytes: int,
    refusals_per_second: float,
    trigger_body_bytes: int,
    trigger_body_seconds: float,
    access_log: bool,
    connections: int,
    tenant_connections: int | None,
    lock_seconds: float,
    statement_seconds: float,
    runner_lease: float,
    streams_per_token: int,
    hooks_allow_http: bool,
    hooks_allow_private: str,
    private_metrics: bool,
    oidc_jwks: Path | None,
    oidc_issuer: str | None,
    oidc_audience: str | None,
    oidc_role_claim: str,
    oidc_tenant_claim: str,
    oidc_roles: str | None,
    **others: Any,
) -> None:
    """Serve HTTP until SIGTERM or Ctrl-C.

    With APP (module:attribute, found from the current folder) the args of its kinds are validated at enqueue.
    """
    try:
        from fenceline.server.run import serve
        from fenceline.server.server_settings import OidcSettings, ServerSettings
    except ImportError as error:
        raise click.ClickException(
            f"the server needs the extra `server`: pip install 'fenceline[server]' ({error})"
        ) from error
    from fenceline.client.app import Fenceline
    from fenceline.client.application import load_app
    from fenceline.context.log_output import configure_logging

    configure_logging("text", level=logging.INFO if access_log else logging.WARNING)

    if dsn is not None:
        os.environ["FENCELINE_DSN"] = dsn  # for an app that names no database itself
    if (oidc_jwks is None) != (oidc_issuer is None) or (oidc_jwks is None) != (oidc_audience is None):
        raise click.UsageError("--oidc-jwks, --oidc-issuer and --oidc-audience are given together")
    try:
        login = read_oidc_login(others)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from error
    if login is not None and oidc_jwks is None:
        raise click.UsageError("--oidc-client-id takes --oidc-jwks, --oidc-issuer and --oidc-audience")
    oidc = None
    if oidc_jwks is not None and oidc_issuer is not None and oidc_audience is not None:
        oidc = OidcSettings(
            jwks_file=oidc_jwks,
            issuer=oidc_issuer,
            audience=oidc_audience,
            role_claim=oidc_role_claim,
            tenant_claim=oidc_tenant_claim,
            roles=None if oidc_roles is None else frozenset(role.strip() for role in oidc_roles.split(",")),
            client=login,
        )
    try:
        settings = ServerSettings(
            host=host,
            port=port,
            no_auth=no_auth,
            first_token_file=first_token_file,
            requests_per_second=requests_per_second,
            tenant_requests_per_second=tenant_requests_per_second,
            max_body_bytes=max_body_bytes,
            refusals_per_second=refusals_per_second,
            trigger_body_bytes=trigger_body_bytes,
            trigger_body_seconds=trigger_body_seconds,
            access_log=access_log,
            edge=read_edge(others),
            tls=read_tls(others),
            hosts=read_names(others["hosts"]),
            origins=read_names(others["origins"]),
            pool_size=connections,
            tenant_connections=tenant_connections,
            lock_seconds=lock_seconds,
            statement_seconds=statement_seconds,
            runner_lease_seconds=runner_lease,
            streams_per_token=streams_per_token,
            hooks_allow_http=hooks_allow_http,
            hooks_allow_private=read_networks(hooks_allow_private),
            private_metrics=private_metrics,
            oidc=oidc,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error

    async def run() -> None:
        loaded = Fenceline(dsn) if app is None else load_app(app)
        async with loaded:
            await serve(loaded, settings, click.echo)

    _run(run())


def read_networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Networks separated by commas. Raises ValueError."""
    networks = []
    for part in text.replace(",", " ").split():
        try:
            networks.append(ip_network(part))
        except ValueError as error:
            raise ValueError(f"--hooks-allow-private {part!r} is not a network: use 10.0.0.0/8 or fd00::/8") from error
    return tuple(networks)


def _run(main: Coroutine[None, None, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)
