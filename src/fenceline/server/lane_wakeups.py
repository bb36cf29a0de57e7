"""Wakes claims that wait for jobs.

Notifications only make claims quicker. Claims poll as well, so a missed notification, or a pooler that forwards none,
only costs a moment.
"""

import asyncio
from collections.abc import Sequence

CHANNEL = "fenceline_ready"


class Heard(asyncio.Event):
    """A waiting claim, and the lanes it was woken for."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes: set[str] = set()


class ReadyLanes:
    def __init__(self) -> None:
        self._waiting: dict[str, set[Heard]] = {}
        self._everybody: set[Heard] = set()
        #: The server is stopping: no claim should wait any longer.
        self.is_closed = False

    async def wait(self, lanes: Sequence[str], seconds: float) -> set[str]:
        """Wait until some of the lanes may have a job, and return them; none after so many seconds, or `close`,
        even if that was called before.
        """
        event = Heard()
        if self.is_closed:
            return event.lanes
        self._everybody.add(event)
        for lane in lanes:
            self._waiting.setdefault(lane, set()).add(event)
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            self._everybody.discard(event)
            for lane in lanes:
                events = self._waiting[lane]
                events.discard(event)
                if not events:
                    del self._waiting[lane]
        return event.lanes

    async def rest(self, seconds: float) -> None:
        """Wait for so many seconds, or until `close`."""
        await self.wait((), seconds)

    def on_notify(self, lane: str) -> None:
        for event in self._waiting.get(lane, ()):
            event.lanes.add(lane)
            event.set()

    def close(self) -> None:
        self.is_closed = True
        for event in self._everybody:
            event.set()
