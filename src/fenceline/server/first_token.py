"""Where the token of the very first start goes: to a person at a terminal, else into a file for its owner alone.

Never into a log, where it would stay, and be collected. It lives for a day: long enough to make others with it.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from fenceline.errors import FencelineError

#: In the folder of the embedded database, or where `$FENCELINE_HOME` says.
FILE_NAME = "first-token"


class NoPlace(FencelineError):
    """The first token cannot be handed over."""


def hand_over(token: str, show: Callable[[str], None], file: Path | None = None) -> None:
    """Show the token at a terminal, unless a file is named; else write it there. Raises NoPlace."""
    what = "The first token, for role platform_admin, valid for a day"
    if file is None and sys.stdout.isatty():
        show(f"{what}. It is shown this once: {token}")
        return
    path = file or Path(os.environ.get("FENCELINE_HOME") or ".fenceline") / FILE_NAME
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # one from before belongs to another database, and may be open to others
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise NoPlace(
            f"the first token cannot be written to {path}: {error.strerror}. Make one with `fenceline token create "
            "--role platform_admin`, and start again"
        ) from error
    with os.fdopen(descriptor, "w") as output:
        output.write(f"{token}\n")
    show(f"{what}, is in {path}")
