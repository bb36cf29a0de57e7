"""Behind PgBouncer in transaction mode: every transaction may run in another session, and LISTEN cannot work."""

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.worker.fleet import Fleet, until

from fenceline import Fenceline

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed (scripts/install-test-tools)")


@pytest.fixture
async def pooled(database: str, tmp_path: Path) -> AsyncIterator[str]:
    """The DSN of the database through a pooler with few sessions, so that they change hands all the time."""
    parts = urlsplit(database)
    query = parse_qs(parts.query)
    host = query["host"][0] if "host" in query else parts.hostname
    port = query["port"][0] if "port" in query else parts.port or 5432
    user = parts.username or query.get("user", ["postgres"])[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen_port = free.getsockname()[1]
    folder = tmp_path / "pgbouncer"
    folder.mkdir()
    (folder / "users.txt").write_text(f'"{user}" "{parts.password or ""}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={host} port={port}\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {listen_port}\nunix_socket_dir =\n"
        f"auth_type = any\nauth_file = {folder}/users.txt\n"
        f"pool_mode = transaction\ndefault_pool_size = 3\nserver_round_robin = 1\nlogfile = {folder}/log\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    command = [str(PGBOUNCER), str(folder / "pgbouncer.ini")]
    if os.getuid() == 0:  # it refuses to run as root
        owner = Path(str(host)).stat().st_uid if str(host).startswith("/") else 0
        account = pwd.getpwuid(owner).pw_name if owner else "nobody"
        shutil.chown(folder, account)
        for part in (tmp_path, *tmp_path.parents):
            if part.stat().st_uid == 0 and not part.stat().st_mode & 0o001:
                part.chmod(part.stat().st_mode | 0o011)
        command = ["runuser", "-u", account, "--", *command]
    auth = f"auth_type = any\n* = host={host} port={port}"
    text = (folder / "pgbouncer.ini").read_text()
    (folder / "pgbouncer.ini").write_text(text.replace(f"* = host={host} port={port}", auth.splitlines()[1] + f" user={user}"))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as bouncer:  # noqa: ASYNC220

        async def answers() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", listen_port)) == 0

        try:
            await until(answers, f"pgbouncer answers; its log: {folder}/log", seconds=10)
            yield f"postgresql://{user}@127.0.0.1:{listen_port}{parts.path}"
        finally:
            bouncer.send_signal(signal.SIGINT)


async def test_a_client_works_through_a_pooler(pooled: str) -> None:
    async with Fenceline(pooled) as app:
        jobs = await asyncio.gather(*(app.enqueue("nap", {"seconds": 0.0}) for _ in range(40)))
        statuses = await asyncio.gather(*(job.status() for job in jobs))
    assert {str(status) for status in statuses} == {"queued"}


async def test_a_worker_runs_jobs_through_a_pooler(fleet: Fleet, pooled: str) -> None:
    await fleet.set_lane("default", poll_interval_ms=500)
    worker = await fleet.started("--processes", "2", children=2, dsn=pooled)

    async def deaf() -> bool:
        return worker.output().count("polling instead") == 2

    await fleet.enqueue("nap", {"seconds": 0.01}, count=100)
    await fleet.enqueue("blocking_nap", {"seconds": 0.01}, count=20)
    await fleet.ended(120)
    await fleet.each_has_one_final_row(120)
    await until(deaf, "the listeners notice that nothing comes")
    # From now on by polling alone; nobody asks to be notified.
    asked = await fleet.scalar("select clock_timestamp()")
    await fleet.enqueue("nap")
    await fleet.ended(121)
    took = await fleet.scalar("select max(claimed_at) - $1 from fenceline.history", asked)
    assert took.total_seconds() < 0.5 + 2.0
    assert "prepared statement" not in worker.output()
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
