"""An error of a job, in one line."""

from collections.abc import Mapping
from typing import Any


def error_line(error: Mapping[str, Any] | None) -> str:
    """`ConnectionError: no route to host`; where there is a code that says more, it comes first."""
    if not error:
        return ""
    code = error.get("code")
    parts = [None if code == "error" else code, error.get("type"), error.get("message")]
    return ": ".join(str(part).partition("\n")[0] for part in parts if part)
