"""Lets a test that measures times have the machine to itself (`@pytest.mark.alone`), whatever pytest-xdist runs beside.

All tests share a lock, which such a test takes for itself. Who wants it so keeps the door shut meanwhile: without that,
the others would take turns with the lock and never let it go.
"""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def take_turn(folder: Path, *, alone: bool) -> Iterator[None]:
    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    with (folder / "turn.lock").open("a") as turn:
        with (folder / "door.lock").open("a") as door:
            fcntl.flock(door, how)
            fcntl.flock(turn, how)
        yield
