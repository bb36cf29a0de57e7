"""Writes what Ansible does as lines of JSON, and holds the lock of what it works on for as long as it does."""

import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: events
type: stdout
short_description: one JSON object per line
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible has no types
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "events"

    def v2_playbook_on_start(self, _playbook: Any) -> None:
        path = Path(os.environ["INFRA_CONSOLE_LOCK"])
        path.parent.mkdir(parents=True, exist_ok=True)
        # Its children inherit the lock: what is left of a run whose runner was killed ends before the next begins.
        self._lock = path.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def v2_runner_on_ok(self, result: Any) -> None:
        self._tell(result, "changed" if result.is_changed() else "ok")

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._tell(result, "skipped")

    def v2_runner_on_failed(self, result: Any, **_: Any) -> None:
        self._tell(result, "failed")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._tell(result, "failed")

    def _tell(self, result: Any, status: str) -> None:
        found = result.result
        diffs = [part.get("diff") for part in found.get("results", [found])]
        texts = [self._get_diff(diff) for diff in diffs if diff]
        event = {
            "resource": result.task.get_name(),
            "status": status,
            "output": found.get("msg"),
            "diff": "".join(texts),
        }
        try:
            sys.stdout.write(json.dumps(event, default=str) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            os._exit(1)  # the runner is gone: nobody counts what this run does any more
