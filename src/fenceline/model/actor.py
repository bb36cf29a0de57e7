"""Who does things, where nobody has said so."""

import getpass
import socket
import sys
from pathlib import PurePath


def default_actor() -> str:
    """The user at this host, as the audit names people; the program, where a user has no name (as in containers)."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):
        return PurePath(sys.argv[0]).name or "python"
