"""Programs that some tests need and that no Python package brings."""

import os
import shutil

import pytest


def needed_tool(name: str, *other_names: str) -> str:
    """The path of a program. Where it is missing the test is skipped, in one line for all of them; in CI it fails."""
    for candidate in (name, *other_names, f"/usr/sbin/{name}"):
        if path := shutil.which(candidate):
            return path
    reason = f"{name} is missing, so what needs it is NOT tested: scripts/install-test-tools"
    if os.environ.get("FENCELINE_REQUIRE_TOOLS"):
        pytest.fail(reason)
    pytest.skip(reason)
