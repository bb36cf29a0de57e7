"""`fenceline runner APP`."""

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from fenceline.cli.options import find_token, not_over_sql, token_file_option, token_option, url_option
from fenceline.cli.settings import setting_option
from fenceline.cli.worker_options import read_settings, worker_options

DAY_SECONDS = 86400
_FILE = click.Path(exists=True, dir_okay=False)


@click.command()
@click.argument("app")
@not_over_sql
@url_option
@token_option
@token_file_option
@worker_options("runner")
@setting_option(
    "runner.lease",
    type=float,
    help="Seconds until a silent runner's jobs are taken over; default: as the server is configured.",
)
@setting_option(
    "runner.rotate_token",
    type=click.FloatRange(min=0, min_open=True),
    help="Replace the token in --token-file every DAYS days.",
)
@setting_option("runner.tls_ca", type=_FILE, help="Certificate authority of the server (PEM).")
@setting_option("runner.tls_cert", type=_FILE, help="Client certificate to present to the server (PEM).")
@setting_option("runner.tls_key", type=_FILE, help="Private key of the certificate (PEM).")
def runner(
    app: str,
    url: str | None,
    token: str | None,
    token_file: str | None,
    once: bool,
    empty_exit: int,
    lease: float | None,
    rotate_token: float | None,
    tls_ca: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    **given: Any,
) -> None:
    """Run the jobs of APP over HTTP only.

    APP is module:attribute, found from the current folder. Runs until SIGTERM or Ctrl-C, without a database: the server
    at --url hands out the jobs, to a token of the role `runner`.
    """
    said, token = token, find_token(click.get_current_context(), token, token_file)
    kept_in = Path(token_file) if token_file and token != said else None
    if rotate_token is not None and kept_in is None:
        raise click.UsageError("--rotate-token needs --token-file, where the new token is kept")
    if not url or not token:
        raise click.UsageError("a runner needs --url (FENCELINE_URL) and --token-file or --token (FENCELINE_TOKEN)")
    try:
        from fenceline.delivery.http import HttpDelivery
        from fenceline.runtime.http_client import ServerAway
        from fenceline.runtime.http_tls import RunnerTls
        from fenceline.runtime.http_token import Token
    except ImportError as error:
        raise click.ClickException(
            f"the runner needs the extra `runner`: pip install 'fenceline[runner]' ({error})"
        ) from error
    from fenceline.client.application import load_app
    from fenceline.worker.in_process import InProcessWorker
    from fenceline.worker.own_process import configure_worker_logging

    settings = read_settings(given)
    try:
        tls = RunnerTls(ca=tls_ca, cert=tls_cert, key=tls_key)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    configure_worker_logging(settings)
    loaded = load_app(app)

    async def run() -> int:
        connect = partial(
            HttpDelivery,
            url,
            Token(token, kept_in),
            lease_seconds=lease,
            rotate_seconds=None if rotate_token is None or once else rotate_token * DAY_SECONDS,
            tls=tls,
            patient=not once,
        )
        running = InProcessWorker(loaded, settings, connect, import_name=app, keeper_first=True)
        running.stop_on_signals()
        if not once:
            await running.run()
            return 0
        done = await running.run_one()
        return empty_exit if done is None else 0 if done else 1

    try:
        code = asyncio.run(run())
    except ServerAway as error:
        raise click.ClickException(
            f"{url}: {error}; check --url (or FENCELINE_URL), and that `fenceline server` is running there"
        ) from error
    sys.exit(code)
