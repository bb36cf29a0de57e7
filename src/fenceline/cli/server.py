"""`fenceline server [APP]`."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path

import click

from fenceline.cli.options import dsn_option, not_over_http
from fenceline.cli.settings import setting_option


@click.command()
@click.argument("app", required=False)
@dsn_option
@not_over_http
@setting_option("--host", key="server.host", default="127.0.0.1", help="Address to listen on.")
@setting_option("--port", key="server.port", default=8321, help="Port to listen on.")
@click.option("--no-auth", is_flag=True, help="Let everybody on this machine do everything; on loopback only.")
@setting_option(
    "--requests-per-second", key="server.requests_per_second", default=5000.0, help="Per token; more is answered 429."
)
@setting_option(
    "--max-body-bytes", key="server.max_body_bytes", default=4 * 1024 * 1024, help="Larger requests are answered 413."
)
@setting_option("--connections", key="server.connections", default=10, help="To the database, at most.")
@setting_option(
    "--runner-lease", key="server.runner_lease", default=60.0, help="Seconds until a silent runner is offline."
)
@setting_option(
    "--streams-per-token",
    key="server.streams_per_token",
    default=2000,
    help="Live streams open at a time; one more is answered 429.",
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
    is_flag=True,
    help="Let outgoing webhooks go into private networks.",
)
@setting_option(
    "--private-metrics",
    key="server.private_metrics",
    is_flag=True,
    help="Ask for a token (workers:view) at /metrics too.",
)
@setting_option(
    "--oidc-jwks",
    key="server.oidc_jwks",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Keys of a provider.",
)
@setting_option("--oidc-issuer", key="server.oidc_issuer", help="What `iss` of its tokens must be.")
@setting_option("--oidc-audience", key="server.oidc_audience", help="What `aud` of its tokens must be.")
@setting_option(
    "--oidc-role-claim", key="server.oidc_role_claim", default="fenceline_role", help="The claim that names the role."
)
@setting_option(
    "--oidc-tenant-claim", key="server.oidc_tenant_claim", default="fenceline_tenant", help="… and the tenant."
)
def server(
    app: str | None,
    dsn: str | None,
    host: str,
    port: int,
    no_auth: bool,
    requests_per_second: float,
    max_body_bytes: int,
    connections: int,
    runner_lease: float,
    streams_per_token: int,
    hooks_allow_http: bool,
    hooks_allow_private: bool,
    private_metrics: bool,
    oidc_jwks: Path | None,
    oidc_issuer: str | None,
    oidc_audience: str | None,
    oidc_role_claim: str,
    oidc_tenant_claim: str,
) -> None:
    """Serve HTTP until SIGTERM or Ctrl-C.

    With APP (module:attribute, found from the current folder) the args of its kinds are validated at enqueue.
    """
    try:
        from fenceline.server.run import serve  # noqa: PLC0415 - an extra, and keeps `--help` quick
        from fenceline.server.settings import OidcSettings, ServerSettings  # noqa: PLC0415 - as above
    except ImportError as error:
        raise click.ClickException(
            f"the server needs the extra `server`: pip install 'fenceline[server]' ({error})"
        ) from error
    from fenceline.client.app import Fenceline  # noqa: PLC0415 - as above
    from fenceline.worker.application import load_app  # noqa: PLC0415 - as above

    if dsn is not None:
        os.environ["FENCELINE_DSN"] = dsn  # for an app that names no database itself
    if (oidc_jwks is None) != (oidc_issuer is None) or (oidc_jwks is None) != (oidc_audience is None):
        raise click.UsageError("--oidc-jwks, --oidc-issuer and --oidc-audience are given together")
    oidc = None
    if oidc_jwks is not None and oidc_issuer is not None and oidc_audience is not None:
        oidc = OidcSettings(
            jwks_file=oidc_jwks,
            issuer=oidc_issuer,
            audience=oidc_audience,
            role_claim=oidc_role_claim,
            tenant_claim=oidc_tenant_claim,
        )
    try:
        settings = ServerSettings(
            host=host,
            port=port,
            no_auth=no_auth,
            requests_per_second=requests_per_second,
            max_body_bytes=max_body_bytes,
            pool_size=connections,
            runner_lease_seconds=runner_lease,
            streams_per_token=streams_per_token,
            hooks_allow_http=hooks_allow_http,
            hooks_allow_private=hooks_allow_private,
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


def _run(main: Coroutine[None, None, None]) -> None:
    try:
        import uvloop  # noqa: PLC0415 - where there is one
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)
