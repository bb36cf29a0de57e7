"""`fenceline runner APP`."""

import asyncio
import sys
from functools import partial
from pathlib import Path

import click

from fenceline.cli.log_options import log_options
from fenceline.cli.options import not_over_sql, token_file_option, token_option, url_option
from fenceline.cli.server_token import find_token
from fenceline.cli.settings import setting_option

DAY_SECONDS = 86400
_FILE = click.Path(exists=True, dir_okay=False)


@click.command()
@click.argument("app")
@not_over_sql
@url_option
@token_option
@token_file_option
@setting_option("--lanes", key="runner.lanes", help="Lanes to serve, separated by commas; default: all.")
@setting_option("--name", key="runner.name", help="Name to show; default: host and process id.")
@setting_option(
    "--labels", key="runner.labels", help="Labels as name=value, separated by commas; jobs can require them."
)
@setting_option("--concurrency", key="runner.concurrency", default=100, help="Async handlers at a time.")
@setting_option("--threads", key="runner.threads", default=10, help="Blocking handlers at a time.")
@setting_option(
    "--isolated", key="runner.isolated", default=2, help="Isolated handlers at a time, each in a separate process."
)
@setting_option("--grace", key="runner.grace", default=30.0, help="Seconds that handlers have to finish on shutdown.")
@setting_option(
    "--lease",
    key="runner.lease",
    type=float,
    help="Seconds until a silent runner's jobs are taken over; default: as the server is configured.",
)
@setting_option(
    "--rotate-token",
    key="runner.rotate_token",
    type=click.FloatRange(min=0, min_open=True),
    help="Replace the token in --token-file every DAYS days.",
)
@setting_option("--tls-ca", key="runner.tls_ca", type=_FILE, help="Certificate authority of the server (PEM).")
@setting_option(
    "--tls-cert", key="runner.tls_cert", type=_FILE, help="Client certificate to present to the server (PEM)."
)
@setting_option("--tls-key", key="runner.tls_key", type=_FILE, help="Private key of the certificate (PEM).")
@click.option("--once", is_flag=True, help="Run one job and exit: 0 success, 1 failure, 2 nothing to do.")
@click.option("--empty-exit", default=2, show_default=True, help="Exit code of --once when there is nothing to do.")
@log_options("runner")
def runner(
    app: str,
    url: str | None,
    token: str | None,
    token_file: str | None,
    lanes: str | None,
    name: str | None,
    labels: str | None,
    concurrency: int,
    threads: int,
    isolated: int,
    grace: float,
    lease: float | None,
    rotate_token: float | None,
    tls_ca: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    once: bool,
    empty_exit: int,
    log_format: str,
    log_level: str | None,
    log_jobs: bool,
) -> None:
    """Run the jobs of APP over HTTP only.

    APP is module:attribute, found from the current folder. Runs until SIGTERM or Ctrl-C, without a database: the server
    at --url hands out the jobs, to a token of the role `runner`.
    """
    given, token = token, find_token(click.get_current_context(), token, token_file)
    kept_in = Path(token_file) if token_file and token != given else None
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
    from fenceline.model.worker_settings import WorkerSettings
    from fenceline.worker.in_process import InProcessWorker
    from fenceline.worker.own_process import configure_worker_logging

    try:
        settings = WorkerSettings(
            lanes=tuple(part.strip() for part in lanes.split(",") if part.strip()) if lanes else None,
            concurrency=concurrency,
            threads=threads,
            isolated=isolated,
            grace_seconds=grace,
            name=name,
            labels=read_labels(labels),
            log_format=log_format,
            log_level=log_level,
            log_jobs=log_jobs,
        )
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


def read_labels(text: str | None) -> dict[str, str] | None:
    """`zone=a,size=b` by name. Raises UsageError."""
    labels: dict[str, str] = {}
    for part in (text or "").split(","):
        name, equals, value = part.strip().partition("=")
        if name and equals:
            labels[name] = value
        elif part.strip():
            raise click.UsageError(f"--labels {part.strip()!r}: write it as name=value")
    return labels or None
