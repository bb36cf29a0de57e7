"""`fenceline worker APP`."""

import asyncio
import os
import sys

import click

from fenceline.cli.options import dsn_option, not_over_http
from fenceline.cli.settings import setting_option


@click.command()
@click.argument("app")
@dsn_option
@not_over_http
@setting_option("--lanes", key="worker.lanes", help="Lanes to serve, separated by commas; all without it.")
@setting_option("--processes", key="worker.processes", default=1, help="Child processes.")
@setting_option("--concurrency", key="worker.concurrency", default=100, help="Async handlers at a time, per process.")
@setting_option("--threads", key="worker.threads", default=10, help="Blocking handlers at a time, per process.")
@setting_option("--isolated", key="worker.isolated", default=2, help="Processes for isolated handlers, per process.")
@setting_option("--grace", key="worker.grace", default=30.0, help="Seconds that handlers have to finish on shutdown.")
@setting_option(
    "--lease", key="worker.lease", default=30.0, help="Seconds until a silent worker's jobs are taken over."
)
@click.option("--once", is_flag=True, help="Run one job and exit: 0 success, 1 failure, 2 nothing to do.")
@click.option("--empty-exit", default=2, show_default=True, help="Exit code of --once when there is nothing to do.")
@setting_option("--log-format", key="worker.log_format", type=click.Choice(["text", "json"]), default="text")
@setting_option("--metrics-host", key="worker.metrics_host", default="127.0.0.1", help="Where the metrics are served.")
@setting_option(
    "--metrics-port",
    key="worker.metrics_port",
    type=int,
    help="Serve Prometheus metrics of all children; needs fenceline[metrics].",
)
def worker(
    app: str,
    dsn: str | None,
    lanes: str | None,
    processes: int,
    concurrency: int,
    threads: int,
    isolated: int,
    grace: float,
    lease: float,
    once: bool,
    empty_exit: int,
    log_format: str,
    metrics_port: int | None,
    metrics_host: str,
) -> None:
    """Run the jobs of APP.

    APP is module:attribute, found from the current folder. Runs until SIGTERM or Ctrl-C.
    """
    from fenceline.worker.application import load_app  # noqa: PLC0415 - keeps `--help` quick
    from fenceline.worker.logs import configure_logging  # noqa: PLC0415 - as above
    from fenceline.worker.metrics import Metrics  # noqa: PLC0415 - as above
    from fenceline.worker.settings import WorkerSettings  # noqa: PLC0415 - as above
    from fenceline.worker.supervisor import Supervisor  # noqa: PLC0415 - as above

    if dsn is not None:
        os.environ["FENCELINE_DSN"] = dsn  # for the children, and for an app that names no database itself
    try:
        settings = WorkerSettings(
            lanes=tuple(name.strip() for name in lanes.split(",") if name.strip()) if lanes else None,
            processes=1 if once else processes,
            concurrency=concurrency,
            threads=threads,
            isolated=isolated,
            grace_seconds=grace,
            lease_seconds=lease,
            log_format=log_format,
            metrics=metrics_port is not None,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    configure_logging(log_format)
    loaded = load_app(app)
    metrics = None
    if metrics_port is not None:
        metrics = Metrics()
        metrics.serve(metrics_port, metrics_host)

    async def run() -> int:
        supervisor = Supervisor(loaded, app, settings, metrics)
        if not once:
            await supervisor.run()
            return 0
        code = await supervisor.run_once()
        return empty_exit if code == 2 else code  # noqa: PLR2004 - the contract's own number

    sys.exit(asyncio.run(run()))
