"""Runs the shell blocks of a page as they are printed, in an empty folder, against a server of their own."""

import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.patience import seconds_left
from tests.support.tools import needed_tool

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: As the pages print it, for readers.
PRINTED_PORT = "8321"


def shell_blocks(page: str) -> list[str]:
    return BLOCK.findall((DOCS / page).read_text("utf-8"))


def run_session(blocks: list[str]) -> str:
    """What the shell prints for all blocks, one after the other. The first job in the background is the server."""
    needed_tool("curl")
    text = "\necho\n".join(blocks).replace(PRINTED_PORT, str(free_port()))
    script = f"set -eo pipefail\ntrap 'kill %1; wait' EXIT\n{text}"
    # Not pytest's tmp_path: the embedded server runs as another user, who must be able to reach the folder.
    with tempfile.TemporaryDirectory(prefix="fenceline-session-", dir="/tmp") as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds_left(),
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def free_port() -> int:
    """Below those that outgoing connections take by themselves: none of them has it by the time the server comes."""
    for port in range(20000 + os.getpid() % 10000, 32000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("no port is free")
