"""`python -m tests.chaos --jobs N --kills N --seed S`: a storm of faults, and what it broke.

On the server that FENCELINE_TEST_DSN names, in a database of its own, else on an embedded one, which is also restarted
and crashed.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import asyncpg
import psycopg
from tests.chaos.storm import Report, Storm
from tests.client.proxy import proxied
from tests.conftest import create_database, drop_database
from tests.worker.fleet import Fleet
from tests.worker.own_server import OwnServer, own_server

from fenceline.testing.databases import dsn_of, migrate_database


async def weather(dsn: str, folder: Path, options: argparse.Namespace, server: OwnServer | None) -> Report:
    await migrate_database(dsn)
    connection = await asyncpg.connect(dsn)
    fleet = Fleet(dsn, folder, connection)
    try:
        async with proxied(dsn) as proxy:
            storm = Storm(fleet, seed=options.seed, lease=options.lease, proxy=proxy, server=server)
            return await storm.run(jobs=options.jobs, faults=options.kills, most_seconds=options.seconds)
    finally:
        fleet.close()
        await fleet.connection.close()


def run_on(dsn: str, folder: Path, options: argparse.Namespace, server: OwnServer | None = None) -> Report:
    name = f"fenceline_chaos_{uuid4().hex[:12]}"
    with psycopg.connect(dsn, autocommit=True) as administrator:
        create_database(administrator, name)
    try:
        return asyncio.run(weather(dsn_of(dsn, name), folder, options, server))
    finally:
        with psycopg.connect(dsn, autocommit=True) as administrator:
            drop_database(administrator, name)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=100, help="faults of all kinds")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--lease", type=float, default=2.0, help="seconds")
    parser.add_argument("--seconds", type=float, default=600.0, help="no new faults after so long")
    options = parser.parse_args()
    server = os.environ.get("FENCELINE_TEST_DSN")
    with tempfile.TemporaryDirectory(prefix="fenceline-chaos-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        if server:
            report = run_on(server, Path(folder), options)
        else:
            with own_server() as own:
                report = run_on(own.dsn, Path(folder), options, own)
    sys.stdout.write(f"{report}\n")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
