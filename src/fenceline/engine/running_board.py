"""A board in shared memory on which a child notes the attempts whose handlers are running, and that its loop turns.

When the child dies, its supervisor reads which handlers were running at that moment: those jobs are the suspects, and
everything else that the child held was merely waiting. While the child lives, the board shows what a blocked loop
cannot report: that it does not turn, whose handler blocks it, and which attempts have timed out. Writing an entry costs
a fraction of a microsecond, so every job is noted.
"""

import mmap
import os
import struct
from dataclasses import dataclass
from uuid import UUID

#: How often the loop notes that it turns.
PULSE_SECONDS = 0.25
#: How long after its timeout a handler that ignores the cancel, or blocks the loop that would send it, is given up.
OVERDUE_SECONDS = 5.0
#: A counter that grows while the loop turns; and the place, from 1 on, of the handler that has its turn.
_HEAD = struct.Struct("=qq24x")
#: Attempt, job, when it times out by the monotonic clock (0: never), whether it runs in a thread.
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
    has_turn: bool  # it runs on the loop right now


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
        """Note a running attempt; pass the returned place to `erase`."""
        place = self._free.pop()
        start = _HEAD.size + place * _ENTRY.size
        _ENTRY.pack_into(self._memory, start, attempt_id.bytes, job_id, deadline or 0.0, in_thread)
        return place

    def erase(self, place: int) -> None:
        _ATTEMPT.pack_into(self._memory, _HEAD.size + place * _ENTRY.size, _FREE)
        self._free.append(place)

    def enter(self, place: int | None) -> None:
        """The handler at a place has its turn on the loop; None: no handler has."""
        if place != self._turn:
            self._turn = place
            _PULSE.pack_into(self._memory, _PULSE.size, 0 if place is None else place + 1)

    def beat(self) -> None:
        """The loop turns."""
        self._beats += 1
        _PULSE.pack_into(self._memory, 0, self._beats)

    # By its keeper ---------------------------------------------------------------------------------------------------

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

    def close(self) -> None:
        self._memory.close()
        os.close(self.descriptor)


def _unnamed_file() -> int:
    import tempfile  # noqa: PLC0415 - only where the system has no memfd

    file = tempfile.TemporaryFile()  # noqa: SIM115 - its descriptor outlives the object
    return os.dup(file.fileno())
