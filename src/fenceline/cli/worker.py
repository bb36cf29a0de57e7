"""`fenceline worker APP`."""

import asyncio
import os
import sys

import click

from fenceline.cli.log_options import log_options
from fenceline.cli.options import dsn_option, not_over_http
from fenceline.cli.runner import read_labels
from fenceline.cli.settings import setting_option


@click.command()
@click.argument("app")
@dsn_option
@not_over_http
@setting_option("--lanes", key="worker.lanes", help="Lanes to serve, separated by commas; default: all.")
@setting_option("--name", key="worker.name", help="Name to show; default: host and process id.")
@setting_option(
    "--labels", key="worker.labels", help="Labels as name=value, separated by commas; jobs can require them."
)
@setting_option(
    "--processes",
    key="worker.processes",
    default=1,
    help="Child processes that run handlers; one per core for CPU-bound work.",
)
@setting_option("--concurrency", key="worker.concurrency", default=100, help="Async handlers at a time, per process.")
@setting_option("--threads", key="worker.threads", default=10, help="Blocking handlers at a time, per process.")
@setting_option(
    "--isolated",
    key="worker.isolated",
    default=2,
    help="Isolated handlers at a time, per process, each in a separate process.",
)
@setting_option(
    "--transactions",
    key="worker.transactions",
    default=1,
    help="ctx.transaction() blocks at a time, per process; each has a connection, beside the two of the process.",
)
@setting_option("--grace", key="worker.grace", default=30.0, help="Seconds that handlers have to finish on shutdown.")
@setting_option(
    "--lease", key="worker.lease", default=30.0, help="Seconds until a silent worker's jobs are taken over."
)
@click.option("--once", is_flag=True, help="Run one job and exit: 0 success, 1 failure, 2 nothing to do.")
@click.option("--empty-exit", default=2, show_default=True, help="Exit code of --once when there is nothing to do.")
@log_options("worker")
@setting_option(
    "--metrics-host",
    key="worker.metrics_host",
    default="127.0.0.1",
    help="Address to serve Prometheus metrics on; 0.0.0.0 for all interfaces.",
)
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
    name: str | None,
    labels: str | None,
    processes: int,
    concurrency: int,
    threads: int,
    isolated: int,
    transactions: int,
    grace: float,
    lease: float,
    once: bool,
    empty_exit: int,
    log_format: str,
    log_level: str | None,
    log_jobs: bool,
    metrics_port: int | None,
    metrics_host: str,
) -> None:
    """Run the jobs of APP.

    APP is module:attribute, found from the current folder. Runs until SIGTERM or Ctrl-C.
    """
    from fenceline.client.application import load_app
    from fenceline.model.worker_settings import WorkerSettings
    from fenceline.worker.own_process import configure_worker_logging
    from fenceline.worker.supervisor import Supervisor
    from fenceline.worker.worker_metrics import Metrics

    if dsn is not None:
        os.environ["FENCELINE_DSN"] = dsn  # for the children, and for an app that names no database itself
    try:
        settings = WorkerSettings(
            lanes=tuple(part.strip() for part in lanes.split(",") if part.strip()) if lanes else None,
            name=name,
            labels=read_labels(labels),
            processes=1 if once else processes,
            concurrency=concurrency,
            threads=threads,
            isolated=isolated,
            transactions=transactions,
            grace_seconds=grace,
            lease_seconds=lease,
            log_format=log_format,
            log_level=log_level,
            log_jobs=log_jobs,
            metrics=metrics_port is not None,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    configure_worker_logging(settings)
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
