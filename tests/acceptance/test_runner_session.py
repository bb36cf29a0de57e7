"""docs/runners.md: the session with curl, run by a shell as it is printed there, against a server of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "runners.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_printed_session_runs() -> None:
    assert shutil.which("curl"), "the session is made with curl"
    _installation, *blocks = BLOCK.findall(GUIDE.read_text("utf-8"))
    assert len(blocks) == 4
    # The port is printed for readers; here it must be free.
    port = str(22000 + os.getpid() % 20000)
    script = "set -eo pipefail\ntrap 'kill %1; wait' EXIT\n" + "\necho\n".join(blocks).replace("8321", port)
    # Not pytest's tmp_path: the embedded server runs as another user, who must be able to reach the folder.
    with tempfile.TemporaryDirectory(prefix="fenceline-runner-", dir="/tmp") as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line]
    heartbeat = json.loads(lines[-5])
    assert heartbeat == {"cancel": [], "grace": {}, "stale": [], "lease_seconds": 60}
    assert [*lines[-9:-5], *lines[-4:]] == [
        "running", "204", "204", "204", "hello world", "200", "stale_attempt", '{"ended": 0}',
    ]  # fmt: skip
