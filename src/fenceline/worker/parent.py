"""Ties the life of a process to that of its parent."""

import contextlib
import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """When the parent is killed nobody keeps our lease or awaits our result, so the kernel ends us too: also in the
    middle of a blocked loop or with the GIL held. Elsewhere than on Linux the end of the link does it, a little later.
    """
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)
