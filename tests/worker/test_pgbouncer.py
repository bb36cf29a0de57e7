"""Behind PgBouncer in transaction mode: every transaction may run in another session, and LISTEN cannot work."""

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.support.figures import Figures
from tests.support.tools import needed_tool
from tests.worker.fleet import Fleet, until

from fenceline import Fenceline


def start_pgbouncer(program: str, database: str, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """The process, and the DSN of the database through it: few sessions, so that they change hands all the time."""
    parts = urlsplit(database)
    query = parse_qs(parts.query)
    host = query["host"][0] if "host" in query else str(parts.hostname)
    port = query["port"][0] if "port" in query else parts.port or 5432
    user = parts.username or query.get("user", ["postgres"])[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen_port = free.getsockname()[1]
    (folder / "users.txt").write_text(f'"{user}" "{parts.password or ""}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={host} port={port} user={user}\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {listen_port}\nunix_socket_dir =\n"
        f"auth_type = any\nauth_file = {folder}/users.txt\nlogfile = {folder}/log\n"
        "pool_mode = transaction\ndefault_pool_size = 3\nserver_round_robin = 1\n"
    )
    account, group = None, None
    if os.getuid() == 0:  # it refuses to run as root, and must be let through to the server's socket
        owner = Path(host).stat().st_uid if host.startswith("/") else 0
        account = pwd.getpwuid(owner).pw_name if owner else "nobody"
        group = pwd.getpwnam(account).pw_gid
        shutil.chown(folder, account)
    process = subprocess.Popen(
        [program, str(folder / "pgbouncer.ini")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=account,
        group=group,
    )
    return process, f"postgresql://{user}@127.0.0.1:{listen_port}{parts.path}"


@pytest.fixture
async def pooled(database: str) -> AsyncIterator[str]:
    """The DSN of the database through a pooler."""
    program = needed_tool("pgbouncer")
    # Not in pytest's folder, which only its own account may enter.
    with tempfile.TemporaryDirectory(prefix="fenceline-pgbouncer-", dir="/tmp") as folder:
        process, dsn = start_pgbouncer(program, database, Path(folder))

        async def answers() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", urlsplit(dsn).port)) == 0

        try:
            await until(answers, "pgbouncer answers")
            yield dsn
        finally:
            process.kill()
            process.wait()


async def test_a_client_works_through_a_pooler(pooled: str) -> None:
    async with Fenceline(pooled) as app:
        jobs = await asyncio.gather(*(app.enqueue("nap", {"seconds": 0.0}) for _ in range(40)))
        statuses = await asyncio.gather(*(job.status() for job in jobs))
    assert {str(status) for status in statuses} == {"queued"}


async def run_through_a_pooler(fleet: Fleet, pooled: str) -> float:
    """How soon a job is claimed of which nobody could tell the worker."""
    await fleet.set_lane("default", poll_interval_ms=500)
    worker = await fleet.started("--processes", "2", children=2, dsn=pooled)

    async def deaf() -> bool:
        return worker.output().count("polling instead") >= 2

    await fleet.enqueue("nap", {"seconds": 0.01}, count=100)
    await fleet.enqueue("blocking_nap", {"seconds": 0.01}, count=20)
    await fleet.ended(120)
    await fleet.each_has_one_final_row(120)
    await until(deaf, "the listeners notice that nothing comes", worker.output)
    # From now on by polling alone; nobody asks to be notified.
    asked = await fleet.scalar("select clock_timestamp()")
    await fleet.enqueue("nap")
    await fleet.ended(121)
    took = await fleet.scalar("select max(claimed_at) - $1 from fenceline.history", asked)
    assert "prepared statement" not in worker.output()
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
    return float(took.total_seconds())


async def test_a_worker_runs_jobs_through_a_pooler(fleet: Fleet, pooled: str) -> None:
    await run_through_a_pooler(fleet, pooled)


@pytest.mark.timing
async def test_how_soon_a_worker_behind_a_pooler_finds_a_job(fleet: Fleet, pooled: str, figures: Figures) -> None:
    figures.at_most("a job is found by polling every 0.5 s after", await run_through_a_pooler(fleet, pooled), 2.5)


async def test_locks_work_through_a_pooler(fleet: Fleet, pooled: str) -> None:
    shutil.copy(Path(__file__).parent.parent / "context" / "lock_app.py", fleet.folder / "lock_app.py")
    await fleet.set_lane("default", poll_interval_ms=200)
    await fleet.started("--processes", "2", children=2, app="lock_app:app", dsn=pooled)
    await fleet.enqueue("edit", {"edition": 1}, count=16)
    await fleet.enqueue("edit_blocking", {"edition": 1}, count=4)
    await fleet.ended(20)
    words = [text.split()[0] for text in fleet.ledger_file.read_text().splitlines()]
    assert words == ["in", "out"] * 20, "never two inside"


async def test_another_default_isolation_is_refused_in_one_line(fleet: Fleet, pooled: str, database: str) -> None:
    """Behind a pooler no session can choose, and limits could not be counted."""
    name = urlsplit(database).path.lstrip("/")
    await fleet.connection.execute(f"alter database \"{name}\" set default_transaction_isolation = 'repeatable read'")
    worker = fleet.start(dsn=pooled)
    assert await worker.exit_code() == 1
    [line] = [line for line in worker.output().splitlines() if "READ COMMITTED" in line]
    assert "REPEATABLE READ" in line
    assert "set default_transaction_isolation = 'read committed'" in line
    assert "Traceback" not in worker.output()
