"""`python -m benchmarks [--quick] [--json FILE] [--strict] [--only NAME ...]`."""

import argparse
import asyncio
import json
import platform
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks import (
    args_type,
    arq_messages,
    batch_handlers,
    claim_finish,
    client_enqueue,
    client_waiting,
    dashboard,
    enqueue_bulk,
    enqueue_each,
    enqueue_single,
    fairness,
    fan_in,
    http_server,
    keys,
    layout,
    list_indexes,
    log_lines,
    prune,
    runner_batches,
    streams,
    wal,
    worker_drain,
    worker_process,
)
from benchmarks.database import fresh_database
from benchmarks.measure import Result, Size, print_table

Measurement = Callable[[asyncpg.Connection, Size], Awaitable[list[Result]]]

MEASUREMENTS: dict[str, Measurement] = {
    "claim_finish": claim_finish.measure,
    "wal": wal.measure,
    "enqueue_bulk": enqueue_bulk.measure,
    "enqueue_each": enqueue_each.measure,
    "enqueue_single": enqueue_single.measure,
    "prune": prune.measure,
    "client_enqueue": client_enqueue.measure,
    "client_waiting": client_waiting.measure,
    "streams": streams.measure,
    "worker_drain": worker_drain.measure,
    "worker_process": worker_process.measure,
    "http_server": http_server.measure,
    "log_lines": log_lines.measure,
    "keys": keys.measure,
    "fairness": fairness.measure,
    "fan_in": fan_in.measure,
    "runner_batches": runner_batches.measure,
    "arq_messages": arq_messages.measure,
}
# Why things are as they are (docs/adr), and what a handler of another shape gains: measured when asked for by name.
REASONS: dict[str, Measurement] = {
    "batch_handlers": batch_handlers.measure,
    "layout": layout.measure,
    "list_indexes": list_indexes.measure,
    "args_type": args_type.measure,
}
# Needs Chromium (scripts/install-test-tools): when asked for by name.
IN_BROWSER: dict[str, Measurement] = {"dashboard": dashboard.measure}


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds: to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument(
        "--only", nargs="+", choices=[*MEASUREMENTS, *REASONS, *IN_BROWSER], metavar="NAME", help="run these only"
    )
    return parser.parse_args()


async def run(names: list[str], size: Size) -> tuple[list[Result], str]:
    """Each measurement gets a database of its own, so that none inherits another's bloat."""
    results: list[Result] = []
    version = ""
    for name in names:
        print(f"{name} …", file=sys.stderr)
        async with fresh_database() as connection:
            version = str(await connection.fetchval("select current_setting('server_version')"))
            results += await (MEASUREMENTS | REASONS | IN_BROWSER)[name](connection, size)
    return results, version


def main() -> int:
    arguments = read_arguments()
    size = Size(quick=arguments.quick)
    results, version = asyncio.run(run(arguments.only or list(MEASUREMENTS), size))
    environment = f"PostgreSQL {version}, Python {platform.python_version()}, {platform.machine()}"
    print_table(results, title=f"{environment}{', quick' if size.quick else ''}")
    if arguments.json:
        document: dict[str, Any] = {
            "environment": environment,
            "quick": size.quick,
            "results": [asdict(result) | {"ok": result.ok} for result in results],
        }
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if arguments.strict and not all(result.ok for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
