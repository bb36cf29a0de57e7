"""What provisions: Ansible, behind the little that the handlers know of it."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

PLAYBOOKS = Path(__file__).parent / "ansible"
PROGRAM = Path(sys.executable).with_name("ansible-playbook")


@dataclass(frozen=True, slots=True)
class Event:
    """What became of one resource: ok (as it should be), changed, skipped or failed."""

    resource: str
    status: str
    output: Any = None
    diff: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Bring about what `what` says of the configuration; `plan`: only tell what would be.

    `start_at`: what comes before that resource is there.
    """

    what: str
    config: Mapping[str, Any]
    environment: Mapping[str, str]
    plan: bool = False
    start_at: str | None = None


class Engine(Protocol):
    """Another tool takes the place of Ansible by having this."""

    def run(self, run: Run) -> AsyncGenerator[Event, None]:
        """Tell of each resource as it is done; closed early, it stops."""
        ...

    def resources(self, what: str) -> list[str]:
        """Their names, in the order in which they are made."""
        ...


class AnsibleEngine:
    def __init__(self, site: Path) -> None:
        self._site = site

    async def run(self, run: Run) -> AsyncGenerator[Event, None]:
        folder = self._site / run.what.removesuffix("_destroy") / run.config["name"]
        with TemporaryDirectory() as home:
            variables = Path(home) / "variables.json"
            values = {"config": _unsafe(run.config), "folder": str(folder), "python": sys.executable}
            variables.write_text(json.dumps(values))
            process = await asyncio.create_subprocess_exec(
                *(str(PROGRAM), "-i", "localhost,", str(PLAYBOOKS / f"{run.what}.yml")),
                *("-e", f"@{variables}", "-e", f"ansible_python_interpreter={sys.executable}", "--diff"),
                *(["--check"] if run.plan else []),
                *([] if run.start_at is None else ["--start-at-task", run.start_at]),
                env={**os.environ, **_settings(home, folder.with_suffix(".lock")), **run.environment},
                stdin=DEVNULL,
                stdout=PIPE,
                start_new_session=True,
            )
            try:
                assert process.stdout is not None  # noqa: S101 - it is a pipe
                async for line in process.stdout:
                    if line.startswith(b"{"):
                        yield Event(**json.loads(line))
                if await process.wait() != 0:
                    raise RuntimeError(f"ansible-playbook ended with code {process.returncode}")
            finally:
                await _end(process)

    def resources(self, what: str) -> list[str]:
        lines = (PLAYBOOKS / f"{what}.yml").read_text().splitlines()
        return [line.partition("- name: ")[2] for line in lines if line.startswith("    - name: ")]


def _settings(home: str, lock: Path) -> dict[str, str]:
    return {
        "ANSIBLE_HOME": home,
        "ANSIBLE_LOCAL_TEMP": home,
        "ANSIBLE_REMOTE_TEMP": home,
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_CALLBACK_PLUGINS": str(PLAYBOOKS / "callback_plugins"),
        "ANSIBLE_STDOUT_CALLBACK": "events",
        "INFRA_CONSOLE_LOCK": str(lock),
        "PYTHONPATH": str(PLAYBOOKS.parents[1]),
    }


def _unsafe(value: Any) -> Any:
    """A text of a spec is a text, whatever braces are in it: Ansible's own mark for "no template"."""
    match value:
        case Mapping():
            return {name: _unsafe(inner) for name, inner in value.items()}
        case list():
            return [_unsafe(inner) for inner in value]
        case str():
            return {"__ansible_unsafe": value}
    return value


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        await process.wait()
