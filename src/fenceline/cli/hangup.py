"""A closed terminal ends a command as SIGTERM does, in order: the last user of the embedded database stops it."""

import os
import signal
import sys

HUNG_UP = 129  # what shells say of a program that a hangup ended


def end_in_order_on_hangup() -> None:
    """Does nothing under `nohup`, where a command is to outlive its terminal."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL:
        return
    terminal = [stream for stream in (0, 1, 2) if os.isatty(stream)]  # of a closed one nobody can tell

    def hang_up(*_given: object) -> None:
        _print_nowhere(terminal)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            sys.exit(HUNG_UP)
        signal.raise_signal(signal.SIGTERM)

    signal.signal(signal.SIGHUP, hang_up)


def _print_nowhere(streams: list[int]) -> None:
    """What is printed from now on would fail, while things are put in order."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in streams:
        os.dup2(nowhere, stream)
    os.close(nowhere)
