"""A closed terminal ends a command in order, as SIGTERM does: the last user of the embedded database stops it."""

import os
import signal
import sys

HUNG_UP = 129  # as shells report a program that a hangup ended


def end_in_order_on_hangup() -> None:
    """Do nothing under `nohup`, where a command should outlive its terminal."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL:
        return
    terminal = [stream for stream in (0, 1, 2) if os.isatty(stream)]  # once it is closed, there is no telling

    def hang_up(*_signal: object) -> None:
        _print_nowhere(terminal)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            sys.exit(HUNG_UP)
        signal.raise_signal(signal.SIGTERM)

    signal.signal(signal.SIGHUP, hang_up)


def _print_nowhere(streams: list[int]) -> None:
    """Writing to the closed terminal would fail, in the middle of putting things in order."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in streams:
        os.dup2(nowhere, stream)
    os.close(nowhere)
