"""Canaries in args, identity, results and errors: none is in the output of worker, runner or server. What a job got
for its identity is in no stream either; and with keys nothing at all is in a dump of the database.
"""

import contextlib
import functools
import os
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from cryptography.fernet import Fernet
from tests.client.test_codec import dump
from tests.server.conftest import make_token
from tests.server.watching import Watcher
from tests.support.patience import seconds_left
from tests.worker.fleet import FENCELINE, WorkerProcess, until

from fenceline import Fenceline

ARGS, IDENTITY = "canary-of-args-51f0", "canary-of-identity-77ab"


class Programs:
    """A server and whatever runs jobs, each with its output in a file."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        self.started: list[WorkerProcess] = []

    def start(self, *arguments: str, **variables: str) -> WorkerProcess:
        log = self.folder / f"{len(self.started)}-{arguments[0]}.log"
        program = WorkerProcess([str(FENCELINE), *arguments], self.folder, self._environment | variables, log)
        self.started.append(program)
        return program

    async def stop(self) -> None:
        try:
            for program in self.started:
                program.process.terminate()
            for program in self.started:
                await program.exit_code()
        finally:
            for program in self.started:
                if program.process.poll() is None:
                    program.kill()


@pytest.fixture(params=["plain", "sealed"])
async def programs(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> AsyncIterator[Programs]:
    shutil.copy(Path(__file__).with_name("canary_app.py"), tmp_path / "canary_app.py")
    environment = {**os.environ, "FENCELINE_DSN": database, "CANARY_IDENTITY": IDENTITY}
    if request.param == "sealed":
        environment["FENCELINE_KEYS"] = Fernet.generate_key().decode()
    programs = Programs(tmp_path, environment)
    yield programs
    await programs.stop()


@pytest.mark.parametrize("runs", ["worker", "runner"])
async def test_canaries_stay_where_they_belong(
    programs: Programs, runs: str, database: str, request: pytest.FixtureRequest
) -> None:
    async with Fenceline(database) as app:
        producer, runner = await make_token(app, "platform_admin"), await make_token(app, "runner")
    server = programs.start("server", "canary_app:app", "--port", "0", "--access-log")
    found = await until(_found(server, r"listens on (\S+)"), "the server listens")
    headers = {"Authorization": f"Bearer {producer}"}
    async with (
        httpx.AsyncClient(base_url=found, headers=headers, timeout=seconds_left()) as client,
        contextlib.AsyncExitStack() as watching,
    ):
        watchers = []
        for raises in (False, True):
            body = {"kind": "carry", "args": {"args": ARGS, "raises": raises}, "identity": "deployer"}
            made = await client.post("/v1/jobs", json=body)
            assert made.status_code == 202, made.text
            watcher = Watcher(client, f"/v1/jobs/{made.json()['id']}/stream")
            watchers.append(await watching.enter_async_context(watcher))
        if runs == "worker":
            programs.start("worker", "canary_app:app", "--log-format", "json")
        else:
            programs.start("runner", "canary_app:app", FENCELINE_URL=found, FENCELINE_TOKEN=runner, FENCELINE_DSN="")
        for watcher in watchers:
            await watcher.until(functools.partial(has_ended, watcher))
        assert [watcher.statuses[-1] for watcher in watchers] == ["succeeded", "failed"]
        streamed = str([watcher.events for watcher in watchers])
        assert (await client.post("/v1/jobs", json={"kind": "carry", "args": {"wrong": ARGS}})).status_code == 422
    await programs.stop()
    assert "[redacted]" in streamed, "the handler did let it out"
    assert IDENTITY not in streamed
    for program in programs.started:
        output = program.output()
        assert len(output) > 20
        assert ARGS not in output, program.log.name
        assert IDENTITY not in output, program.log.name
    text = dump(database)
    assert IDENTITY not in text
    assert (ARGS in text) == ("plain" in request.node.callspec.id), "or this test could not fail"


def has_ended(watcher: Watcher) -> bool:
    return watcher.statuses[-1:] in (["succeeded"], ["failed"])


def _found(program: WorkerProcess, pattern: str) -> Callable[[], Awaitable[str | None]]:
    async def look() -> str | None:
        match = re.search(pattern, program.output())
        return None if match is None else match[1]

    return look
