"""The workers of examples/other_languages do what jobs may rely on, over HTTP."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.foreign.bridge import Bridge
from tests.runner.conftest import LiveServer
from tests.server.conftest import make_token
from tests.support.patience import seconds_left
from tests.support.tools import needed_tool

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
    tools: tuple[str, ...]

    #: Of the handler, not of the worker: it would ask the server itself.
    test_children_run_after_their_parent = None  # type: ignore[assignment]  # taken out
    test_log_phase_and_progress_are_kept = None  # type: ignore[assignment]  # taken out
    test_a_handler_waits_outside_its_slot_and_runs_no_step_again = None  # type: ignore[assignment]  # taken out
    test_a_lock_lets_in_one_handler_at_a_time = None  # type: ignore[assignment]  # taken out

    @pytest.fixture
    def dsn(self, database: str) -> str:
        for tool in self.tools:
            needed_tool(tool)
        return database

    def patience_seconds(self) -> float:
        return seconds_left()

    def commands(self, folder: Path, url: str, bridge: str, kinds: list[str]) -> list[list[str]]:
        """Write the handlers of these kinds, and say how workers are started that run them."""
        raise NotImplementedError

    @contextlib.asynccontextmanager
    async def working(self, app: Fenceline) -> AsyncIterator[None]:
        bridge = Bridge(app_parts(app).handlers)
        async with contextlib.AsyncExitStack() as stack:
            await bridge.start()
            stack.push_async_callback(bridge.stop)
            server_app = await stack.enter_async_context(Fenceline(await app.dsn()))
            live = LiveServer(server_app, ServerSettings(token_cache_seconds=0.0))
            await live.start()
            stack.push_async_callback(live.stop)
            token = await make_token(server_app, "runner")
            environment = {**os.environ, "FENCELINE_TOKEN": token, "BEAT_SECONDS": "0.5"}
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fenceline-foreign-"))
            commands = self.commands(Path(folder), live.url, bridge.url, list(app_parts(app).handlers))
            workers = []
            for command in commands:
                workers.append(await asyncio.create_subprocess_exec(*command, env=environment))
                stack.push_async_callback(end, workers[-1])
            yield
            for worker in workers:
                worker.terminate()
            codes = [await asyncio.wait_for(worker.wait(), seconds_left()) for worker in workers]
            assert codes == [0] * len(workers)


async def end(worker: asyncio.subprocess.Process) -> None:
    """However the test has ended."""
    with contextlib.suppress(ProcessLookupError):
        worker.kill()
    await worker.wait()


class TestBash(ForeignConformance):
    tools = ("curl", "jq")

    def commands(self, folder: Path, url: str, bridge: str, kinds: list[str]) -> list[list[str]]:
        for kind in kinds:
            program = folder / kind
            program.write_text(SHELL_HANDLER.format(url=bridge, kind=kind))
            program.chmod(0o755)
        return [[str(EXAMPLES / "worker.sh"), url, str(folder)]] * 2


class TestNode(ForeignConformance):
    tools = ("node",)

    def commands(self, folder: Path, url: str, bridge: str, kinds: list[str]) -> list[list[str]]:
        handlers = folder / "handlers.mjs"
        handlers.write_text("".join(NODE_HANDLER.format(url=bridge, kind=kind) for kind in kinds))
        return [["node", str(EXAMPLES / "worker.mjs"), url, str(handlers)]]


@pytest.mark.parametrize("name", ["worker.sh", "worker.mjs"])
def test_a_worker_is_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) <= LINES
