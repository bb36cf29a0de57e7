"""`fenceline server [APP]`."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path

import click

from fenceline.cli.options import dsn_option


@click.command()
@click.argument("app", required=False)
@dsn_option
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8321, show_default=True)
@click.option("--no-auth", is_flag=True, help="Let everybody on this machine do everything; on loopback only.")
@click.option("--requests-per-second", default=5000.0, show_default=True, help="Per token; more is answered 429.")
@click.option("--max-body-bytes", default=4 * 1024 * 1024, show_default=True, help="Larger requests are answered 413.")
@click.option("--connections", default=10, show_default=True, help="To the database, at most.")
@click.option("--private-metrics", is_flag=True, help="Ask for a token (workers:view) at /metrics too.")
@click.option("--oidc-jwks", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Keys of a provider.")
@click.option("--oidc-issuer", help="What `iss` of its tokens must be.")
@click.option("--oidc-audience", help="What `aud` of its tokens must be.")
@click.option("--oidc-role-claim", default="fenceline_role", show_default=True, help="The claim that names the role.")
@click.option("--oidc-tenant-claim", default="fenceline_tenant", show_default=True, help="… and the tenant.")
def server(
    app: str | None,
    dsn: str | None,
    host: str,
    port: int,
    no_auth: bool,  # noqa: FBT001 - click passes flags by name
    requests_per_second: float,
    max_body_bytes: int,
    connections: int,
    private_metrics: bool,  # noqa: FBT001 - as above
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
