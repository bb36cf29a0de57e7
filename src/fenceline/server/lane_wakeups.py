"""Wakes claims that wait for jobs.

A notification only makes them quicker. Whoever waits polls as well, so a missed one, or a pooler that passes none on,
costs a moment.
"""

import asyncio
from collections.abc import Sequence

CHANNEL = "fenceline_ready"


class Heard(asyncio.Event):
    """Who waits, and what for."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes: set[str] = set()


class ReadyLanes:
    def __init__(self) -> None:
        self._waiting: dict[str, set[Heard]] = {}
        #: The server is to stop: nobody should be kept waiting any more.
        self.is_closed = False

    async def wait(self, lanes: Sequence[str], seconds: float) -> set[str]:
        """Until some of the lanes may have got a job (those), so many seconds have passed or `close` (none)."""
        event = Heard()
        for lane in lanes:
            self._waiting.setdefault(lane, set()).add(event)
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            for lane in lanes:
                events = self._waiting[lane]
                events.discard(event)
                if not events:
                    del self._waiting[lane]
        return event.lanes

    def on_notify(self, lane: str) -> None:
        for event in self._waiting.get(lane, ()):
            event.lanes.add(lane)
            event.set()

    def close(self) -> None:
        self.is_closed = True
        for event in {event for events in self._waiting.values() for event in events}:
            event.set()
