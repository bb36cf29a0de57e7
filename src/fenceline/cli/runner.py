"""`fenceline runner APP`."""

import asyncio
import logging
import sys

import click

from fenceline.cli.options import not_over_sql, token_option, url_option
from fenceline.cli.settings import setting_option


@click.command()
@click.argument("app")
@not_over_sql
@url_option
@token_option
@setting_option("--lanes", key="runner.lanes", help="Lanes to serve, separated by commas; all without it.")
@setting_option("--name", key="runner.name", help="What people know it by; host and process id without it.")
@setting_option("--labels", key="runner.labels", help="name=value, separated by commas.")
@setting_option("--concurrency", key="runner.concurrency", default=100, help="Async handlers at a time.")
@setting_option("--threads", key="runner.threads", default=10, help="Blocking handlers at a time.")
@setting_option("--isolated", key="runner.isolated", default=2, help="Processes for isolated handlers.")
@setting_option("--grace", key="runner.grace", default=30.0, help="Seconds that handlers have to finish on shutdown.")
@setting_option(
    "--lease",
    key="runner.lease",
    type=float,
    help="Seconds until a silent runner's jobs are taken over; as the server says without it.",
)
@click.option("--once", is_flag=True, help="Run one job and exit: 0 success, 1 failure, 2 nothing to do.")
@click.option("--empty-exit", default=2, show_default=True, help="Exit code of --once when there is nothing to do.")
@setting_option("--log-format", key="runner.log_format", type=click.Choice(["text", "json"]), default="text")
def runner(
    app: str,
    url: str | None,
    token: str | None,
    lanes: str | None,
    name: str | None,
    labels: str | None,
    concurrency: int,
    threads: int,
    isolated: int,
    grace: float,
    lease: float | None,
    once: bool,
    empty_exit: int,
    log_format: str,
) -> None:
    """Run the jobs of APP over HTTP only.

    APP is module:attribute, found from the current folder. Runs until SIGTERM or Ctrl-C, without a database: the server
    at --url hands out the jobs, to a token of the role `runner`.
    """
    if not url or not token:
        raise click.UsageError("a runner needs --url (FENCELINE_URL) and --token (FENCELINE_TOKEN)")
    try:
        from fenceline.runner.client import ServerAway  # noqa: PLC0415 - an extra, and keeps `--help` quick
        from fenceline.runner.program import Runner  # noqa: PLC0415 - as above
    except ImportError as error:
        raise click.ClickException(
            f"the runner needs the extra `runner`: pip install 'fenceline[runner]' ({error})"
        ) from error
    from fenceline.worker.application import load_app  # noqa: PLC0415 - as above
    from fenceline.worker.logs import configure_logging  # noqa: PLC0415 - as above
    from fenceline.worker.settings import WorkerSettings  # noqa: PLC0415 - as above

    try:
        settings = WorkerSettings(
            lanes=tuple(part.strip() for part in lanes.split(",") if part.strip()) if lanes else None,
            concurrency=concurrency,
            threads=threads,
            isolated=isolated,
            grace_seconds=grace,
            name=name,
            log_format=log_format,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    configure_logging(log_format)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells of every request
    loaded = load_app(app)

    async def run() -> int:
        running = Runner(
            loaded, settings, url=url, token=token, app_name=app, labels=read_labels(labels), lease_seconds=lease
        )
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
