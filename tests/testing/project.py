"""Runs pytest as a user of Fenceline does: in a project of its own, with the plugin."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.patience import seconds_left

#: By their modules, and no others: it takes seconds to load all that this environment has.
PLUGINS = ("-p", "fenceline.pytest_plugin", "-p", "pytest_asyncio.plugin", "-p", "xdist")


def run_pytest(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGINS, *arguments],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )
