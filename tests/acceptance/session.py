"""Runs the shell blocks of a page as they are printed, in an empty folder, against a server of their own."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.patience import KEPT_SECONDS, seconds_left
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
        with subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a group, to be ended as one
        ) as session:
            try:
                shown, complaints = session.communicate(timeout=seconds_left())
            except BaseException:
                end_group(session)
                raise
    assert session.returncode == 0, shown + complaints
    return shown


def end_group(session: "subprocess.Popen[str]") -> None:
    """First as the script does at its end: the embedded PostgreSQL, in a group of its own, is stopped by the server."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session.pid, signal.SIGTERM)
        try:
            session.communicate(timeout=KEPT_SECONDS / 2)
        except subprocess.TimeoutExpired:
            os.killpg(session.pid, signal.SIGKILL)


def free_port() -> int:
    """Below those that outgoing connections take by themselves: none of them has it by the time the server comes."""
    for port in range(20000 + os.getpid() % 10000, 32000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("no port is free")
