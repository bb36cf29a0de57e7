"""`fenceline worker APP`."""

import asyncio
import os
import sys
from typing import Any

import click

from fenceline.cli.options import dsn_option, not_over_http
from fenceline.cli.settings import setting_option
from fenceline.cli.worker_options import read_settings, worker_options


@click.command()
@click.argument("app")
@dsn_option
@not_over_http
@worker_options("worker")
@setting_option(
    "worker.processes", default=1, help="Child processes that run handlers; one per core for CPU-bound work."
)
@setting_option(
    "worker.transactions",
    default=1,
    help="ctx.transaction() blocks at a time, per process; each has a connection, beside the two of the process.",
)
@setting_option("worker.lease", default=30.0, help="Seconds until a silent worker's jobs are taken over.")
@setting_option(
    "worker.metrics_host",
    default="127.0.0.1",
    help="Address to serve Prometheus metrics on; 0.0.0.0 for all interfaces.",
)
@setting_option(
    "worker.metrics_port", type=int, help="Serve Prometheus metrics of all children; needs fenceline[metrics]."
)
def worker(
    app: str,
    dsn: str | None,
    once: bool,
    empty_exit: int,
    processes: int,
    transactions: int,
    lease: float,
    metrics_port: int | None,
    metrics_host: str,
    **given: Any,
) -> None:
    """Run the jobs of APP.

    APP is module:attribute, found from the current folder. Runs until SIGTERM or Ctrl-C.
    """
    from fenceline.client.application import load_app
    from fenceline.worker.own_process import configure_worker_logging
    from fenceline.worker.supervisor import Supervisor
    from fenceline.worker.worker_metrics import Metrics

    if dsn is not None:
        os.environ["FENCELINE_DSN"] = dsn  # for the children, and for an app that names no database itself
    settings = read_settings(
        given,
        processes=1 if once else processes,
        transactions=transactions,
        lease_seconds=lease,
        metrics=metrics_port is not None,
    )
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
