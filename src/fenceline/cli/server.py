"""`fenceline server [APP]`."""

import asyncio
import logging
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click

from fenceline.cli.options import dsn_option, not_over_http
from fenceline.cli.server_options import read_settings, server_options
from fenceline.cli.settings import setting_option


@click.command()
@click.argument("app", required=False)
@dsn_option
@not_over_http
@click.option("--no-auth", is_flag=True, help="Let everybody on this machine do everything; on loopback only.")
@setting_option(
    "server.first_token_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the token of the first start; default: the terminal, or .fenceline/first-token.",
)
@server_options
def server(app: str | None, dsn: str | None, no_auth: bool, first_token_file: Path | None, **given: Any) -> None:
    """Serve HTTP until SIGTERM or Ctrl-C.

    With APP (module:attribute, found from the current folder) the args of its kinds are validated at enqueue.
    """
    try:
        from fenceline.server.run import serve
    except ImportError as error:
        raise click.ClickException(
            f"the server needs the extra `server`: pip install 'fenceline[server]' ({error})"
        ) from error
    from fenceline.app import Fenceline
    from fenceline.client.application import load_app
    from fenceline.context.log_output import configure_logging

    if dsn is not None:
        os.environ["FENCELINE_DSN"] = dsn  # for an app that names no database itself
    try:
        settings = read_settings(given, no_auth=no_auth, first_token_file=first_token_file)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from error
    configure_logging("text", level=logging.INFO if settings.access_log else logging.WARNING)

    async def run() -> None:
        loaded = Fenceline(dsn) if app is None else load_app(app)
        async with loaded:
            await serve(loaded, settings, click.echo)

    _run(run())


def _run(main: Coroutine[None, None, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)
