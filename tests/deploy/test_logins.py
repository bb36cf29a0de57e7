"""deploy/postgres/10-roles.sh on a real server: every program works with its login; a worker's makes no tokens."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from tests.deploy.manifests import DEPLOY
from tests.support.patience import seconds_left
from tests.worker.fleet import FENCELINE

from fenceline import Fenceline
from fenceline.database.embedded import EmbeddedPostgres
from fenceline.database.embedded_cluster import find_binaries
from fenceline.testing.databases import dsn_of

PASSWORDS = {f"{name}_PASSWORD": f"password of {name}" for name in ("OWNER", "SERVER", "WORKER", "PRODUCER")}
APP = """
from fenceline import Fenceline

app = Fenceline()


@app.job()
def greet(name: str) -> str:
    return f"hello {name}"
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own: its roles are for the whole cluster."""
    folder = Path(os.environ["FENCELINE_TEST_SERVER_FOLDER"]).parent / f"logins-{os.getpid()}"
    with EmbeddedPostgres(folder) as dsn:
        parts = urlsplit(dsn)
        host = dict(part.split("=") for part in parts.query.split("&"))["host"]
        subprocess.run(
            [DEPLOY / "postgres" / "10-roles.sh"],
            env={
                **os.environ, **PASSWORDS, "PATH": f"{find_binaries()}{os.pathsep}{os.environ['PATH']}",
                "PGHOST": host, "POSTGRES_USER": parts.username or "postgres",
            },
            check=True,
            timeout=seconds_left(),
        )  # fmt: skip
        yield dsn_of(dsn, "fenceline")
    subprocess.run(["rm", "-rf", folder], check=True)


def login(dsn: str, user: str) -> str:
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}"))


def run(folder: Path, dsn: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [FENCELINE, *arguments],
        cwd=folder,
        env={**os.environ, "FENCELINE_DSN": dsn},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds_left(),
    )


def test_each_program_works_with_its_own_login(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    owner, http, work, enqueue = (login(cluster, f"fenceline_{name}") for name in ("owner", "http", "run", "enqueue"))
    migrated = run(tmp_path, owner, "migrate")
    assert migrated.returncode == 0, migrated.stderr
    assert "administrator" not in migrated.stdout, "the roles are there, and have their grants"
    made = run(tmp_path, enqueue, "enqueue", "greet", "--args", '{"name": "world"}')
    assert made.returncode == 0, made.stderr
    worked = run(tmp_path, work, "worker", "shop:app", "--once")
    assert worked.returncode == 0, worked.stderr
    assert asyncio.run(result_of(http, made.stdout.strip())) == "hello world"
    assert run(tmp_path, http, "token", "create", "--role", "viewer").returncode == 0
    for dsn in (work, enqueue):
        refused = run(tmp_path, dsn, "token", "create", "--role", "platform_admin")
        assert refused.returncode != 0
        assert "fl_" not in refused.stdout
        assert run(tmp_path, dsn, "lanes", "set", "default", "--slots", "1").returncode != 0
    with psycopg.connect(cluster) as connection:
        supers = connection.execute(
            "select rolname from pg_roles where rolname like 'fenceline%%' and (rolsuper or rolcreaterole)"
        ).fetchall()
    assert supers == []


async def result_of(dsn: str, job_id: str) -> object:
    async with Fenceline(dsn) as app:
        return await app.jobs.handle(job_id).result(seconds_left())
