"""Who acts, where nobody is named."""

import getpass
import socket
import sys
from pathlib import PurePath


def default_actor() -> str:
    """`user@host`, as the audit names people; the program's name if the user has none (as in containers)."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):
        return PurePath(sys.argv[0]).name or "python"
