"""`fenceline runner APP`."""

import asyncio
import logging
import sys

import click


@click.command()
@click.argument("app")
@click.option("--url", envvar="FENCELINE_URL", required=True, help="Where the server is. [FENCELINE_URL]")
@click.option(
    "--token", envvar="FENCELINE_TOKEN", required=True, help="A token of the role `runner`. [FENCELINE_TOKEN]"
)
@click.option("--lanes", help="Lanes to serve, separated by commas; all without it.")
@click.option("--name", help="What people know it by; host and process id without it.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="May be repeated.")
@click.option("--concurrency", default=100, show_default=True, help="Async handlers at a time.")
@click.option("--threads", default=10, show_default=True, help="Blocking handlers at a time.")
@click.option("--isolated", default=2, show_default=True, help="Processes for isolated handlers.")
@click.option("--grace", default=30.0, show_default=True, help="Seconds that handlers have to finish on shutdown.")
@click.option(
    "--lease", type=float, help="Seconds until a silent runner's jobs are taken over; the server's without it."
)
@click.option("--once", is_flag=True, help="Run one job and exit: 0 success, 1 failure, 2 nothing to do.")
@click.option("--empty-exit", default=2, show_default=True, help="Exit code of --once when there is nothing to do.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def runner(
    app: str,
    url: str,
    token: str,
    lanes: str | None,
    name: str | None,
    labels: tuple[str, ...],
    concurrency: int,
    threads: int,
    isolated: int,
    grace: float,
    lease: float | None,
    once: bool,  # noqa: FBT001 - click passes flags by name
    empty_exit: int,
    log_format: str,
) -> None:
    """Run the jobs of APP (module:attribute, found from the current folder) over HTTP until SIGTERM or Ctrl-C."""
    try:
        from fenceline.runner.program import Runner  # noqa: PLC0415 - an extra, and keeps `--help` quick
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

    sys.exit(asyncio.run(run()))


def read_labels(labels: tuple[str, ...]) -> dict[str, str] | None:
    """`zone=a` to name and value. Raises UsageError."""
    read: dict[str, str] = {}
    for text in labels:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--label {text!r}: write it as NAME=VALUE")
        read[name] = value
    return read or None
