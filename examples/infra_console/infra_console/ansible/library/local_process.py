"""A process on this machine: there (`state: started`), or gone (`state: stopped`)."""

import os
import signal
import subprocess
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

GRACE_SECONDS = 20


def find(pid_file: Path) -> int | None:
    """The process, if it lives; its command must be known to tell it from a later one with the same number."""
    try:
        pid, command = pid_file.read_text().split("\n", 1)
        found = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode()
    except (OSError, ValueError):
        return None
    return int(pid) if found == command else None


def start(argv: list[str], pid_file: Path, log: Path, folder: str) -> None:
    with log.open("ab") as output:
        process = subprocess.Popen(argv, cwd=folder, stdout=output, stderr=output, start_new_session=True)
    pid_file.write_text("\n".join([str(process.pid), "\0".join(argv)]))


def stop(pid: int, pid_file: Path) -> None:
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while find(pid_file) and time.monotonic() < deadline:
        time.sleep(0.05)
    if find(pid_file):
        os.kill(pid, signal.SIGKILL)


def main() -> None:
    module = AnsibleModule(
        {
            "state": {"choices": ["started", "stopped"], "default": "started"},
            "argv": {"type": "list", "elements": "str", "default": []},
            "folder": {"type": "path", "required": True},
            "name": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    given = module.params
    pid_file, log = (Path(given["folder"]) / f"{given['name']}.{ending}" for ending in ("pid", "log"))
    pid = find(pid_file)
    changed = (pid is None) == (given["state"] == "started")
    if changed and not module.check_mode:
        if pid is None:
            start(given["argv"], pid_file, log, given["folder"])
        else:
            stop(pid, pid_file)
    module.exit_json(changed=changed)


main()
