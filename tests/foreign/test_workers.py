"""The workers of examples/other_languages do what jobs may rely on, over HTTP."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.dashboard.site import leave_out
from tests.foreign.bridge import Bridge
from tests.runner.conftest import LiveServer
from tests.server.conftest import make_token

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.server.server_settings import ServerSettings
from fenceline.testing.delivery import DeliveryConformance

EXAMPLES = Path(__file__).parents[2] / "examples" / "other_languages"
LINES = 60

SHELL_HANDLER = """#!/bin/sh
code=$(curl -s -o "$0.$$" -w '%{{http_code}}' -H "Number: $FENCELINE_ATTEMPT" -H "Token: $FENCELINE_FENCE" \\
    -H 'Expect:' --data-binary @- {url}/{kind})
[ "$code" = 200 ] && exec cat "$0.$$"
cat "$0.$$" >&2
[ "$code" = 422 ] && exit 65
exit 1
"""
NODE_HANDLER = """
export async function {kind}(args, {{ number, token, signal }}) {{
  const headers = {{ Number: String(number), Token: String(token) }};
  const answer = await fetch("{url}/{kind}", {{ method: "POST", headers, body: JSON.stringify(args), signal }});
  if (answer.ok) return answer.json();
  throw Object.assign(new Error(await answer.text()), {{ final: answer.status === 422 }});
}}
"""


class ForeignConformance(DeliveryConformance):
    many = 20  # each takes several requests, in bash as many processes
    tool: str

    #: Of the handler, not of the worker: it would ask the server itself.
    test_children_run_after_their_parent = None  # type: ignore[assignment]  # taken out
    test_log_phase_and_progress_are_kept = None  # type: ignore[assignment]  # taken out
    test_a_handler_waits_outside_its_slot_and_runs_no_step_again = None  # type: ignore[assignment]  # taken out

    @pytest.fixture
    def dsn(self, database: str) -> str:
        if shutil.which(self.tool) is None:
            leave_out(f"{self.tool} is not installed, so the example that needs it is NOT checked")
        return database

    def commands(self, folder: Path, url: str, bridge: str, kinds: list[str]) -> list[list[str]]:
        """Write the handlers of these kinds, and say how workers are started that run them."""
        raise NotImplementedError

    @contextlib.asynccontextmanager
    async def working(self, app: Fenceline) -> AsyncIterator[None]:
        bridge = Bridge(app_parts(app).handlers)
        await bridge.start()
        async with Fenceline(await app.dsn()) as server_app:
            live = LiveServer(server_app, ServerSettings(token_cache_seconds=0.0))
            await live.start()
            token = await make_token(server_app, "runner")
            environment = {**os.environ, "FENCELINE_TOKEN": token, "BEAT_SECONDS": "0.5"}
            with tempfile.TemporaryDirectory(prefix="fenceline-foreign-") as folder:
                commands = self.commands(Path(folder), live.url, bridge.url, list(app_parts(app).handlers))
                workers = [await asyncio.create_subprocess_exec(*command, env=environment) for command in commands]
                try:
                    yield
                finally:
                    for worker in workers:
                        worker.terminate()
                    codes = [await asyncio.wait_for(worker.wait(), 60) for worker in workers]
            assert codes == [0] * len(workers)
            await live.stop()
        await bridge.stop()


class TestBash(ForeignConformance):
    tool = "jq"

    def commands(self, folder: Path, url: str, bridge: str, kinds: list[str]) -> list[list[str]]:
        for kind in kinds:
            program = folder / kind
            program.write_text(SHELL_HANDLER.format(url=bridge, kind=kind))
            program.chmod(0o755)
        return [[str(EXAMPLES / "worker.sh"), url, str(folder)]] * 2


class TestNode(ForeignConformance):
    tool = "node"

    def commands(self, folder: Path, url: str, bridge: str, kinds: list[str]) -> list[list[str]]:
        handlers = folder / "handlers.mjs"
        handlers.write_text("".join(NODE_HANDLER.format(url=bridge, kind=kind) for kind in kinds))
        return [["node", str(EXAMPLES / "worker.mjs"), url, str(handlers)]]


@pytest.mark.parametrize("name", ["worker.sh", "worker.mjs"])
def test_a_worker_is_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) <= LINES
