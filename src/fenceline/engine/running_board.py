"""A board in shared memory on which a child notes the attempts whose handlers are running, and that its loop turns.

When the child dies, its supervisor reads who was running at that moment: those are the suspects, and everything else
that the child held was merely waiting. While it lives, the board shows from outside what a blocked loop cannot tell:
that it does not turn, whose handler was on it last, and whose time is over. Writing an entry costs a fraction of a
microsecond, so every job is noted.
"""

import mmap
import os
import struct
from dataclasses import dataclass
from uuid import UUID

#: How often the loop notes that it turns.
PULSE_SECONDS = 0.25
#: A handler that ignores that its time is over, or keeps the loop from telling it, loses its attempt after so long.
OVERDUE_SECONDS = 5.0
#: How often the loop has turned, as counted by a timer; and the place of the handler that has its turn, from 1 on.
_HEAD = struct.Struct("=qq24x")
#: Attempt, job, when its time is over by the monotonic clock (0: never), whether it runs in a thread.
_ENTRY = struct.Struct("=16sqd?7x")
_ATTEMPT = struct.Struct("=16s")
_PULSE = struct.Struct("=q")
_FREE = bytes(_ATTEMPT.size)


@dataclass(frozen=True, slots=True)
class Entry:
    attempt_id: UUID
    job_id: int
    deadline: float | None
    in_thread: bool
    has_turn: bool  # it was the last to run on the loop, and has not given it back


class RunningBoard:
    def __init__(self, descriptor: int | None = None, *, entries: int = 1024) -> None:
        """A new board, or the one behind a descriptor."""
        if descriptor is None:
            descriptor = os.memfd_create("fenceline-board") if hasattr(os, "memfd_create") else _unnamed_file()
            os.ftruncate(descriptor, _HEAD.size + _ENTRY.size * entries)
        self.descriptor = descriptor
        self._size = os.fstat(descriptor).st_size
        self._memory = mmap.mmap(descriptor, self._size)
        self._free = list(range((self._size - _HEAD.size) // _ENTRY.size - 1, -1, -1))
        self._beats = 0
        self._turn: int | None = None

    # By the child ----------------------------------------------------------------------------------------------------

    def note(self, attempt_id: UUID, job_id: int, deadline: float | None = None, *, in_thread: bool = False) -> int:
        """Note a running attempt; the place is given back to `erase`."""
        place = self._free.pop()
        start = _HEAD.size + place * _ENTRY.size
        _ENTRY.pack_into(self._memory, start, attempt_id.bytes, job_id, deadline or 0.0, in_thread)
        return place

    def erase(self, place: int) -> None:
        _ATTEMPT.pack_into(self._memory, _HEAD.size + place * _ENTRY.size, _FREE)
        self._free.append(place)

    def enter(self, place: int | None) -> None:
        """The handler at a place has its turn on the loop; None: nobody has."""
        if place != self._turn:
            self._turn = place
            _PULSE.pack_into(self._memory, _PULSE.size, 0 if place is None else place + 1)

    def beat(self) -> None:
        """The loop turns."""
        self._beats += 1
        _PULSE.pack_into(self._memory, 0, self._beats)

    # By whoever watches it -------------------------------------------------------------------------------------------

    @property
    def pulse(self) -> int:
        """Changes as long as the loop turns."""
        return int(_HEAD.unpack_from(self._memory, 0)[0])

    def entries(self) -> list[Entry]:
        turn = _HEAD.unpack_from(self._memory, 0)[1]
        noted = []
        for place, start in enumerate(range(_HEAD.size, self._size, _ENTRY.size), start=1):
            attempt_id, job_id, deadline, in_thread = _ENTRY.unpack_from(self._memory, start)
            if attempt_id != _FREE:
                noted.append(Entry(UUID(bytes=attempt_id), job_id, deadline or None, in_thread, place == turn))
        return noted

    def read(self) -> list[UUID]:
        return [entry.attempt_id for entry in self.entries()]

    def close(self) -> None:
        self._memory.close()
        os.close(self.descriptor)


def _unnamed_file() -> int:
    import tempfile  # noqa: PLC0415 - only where the system has no memfd

    file = tempfile.TemporaryFile()  # noqa: SIM115 - its descriptor outlives the object
    return os.dup(file.fileno())
