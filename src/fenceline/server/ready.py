"""Wakes claims that wait for jobs.

A notification only makes them quicker. Whoever waits polls as well, so a missed one, or a pooler that passes none on,
costs a moment.
"""

import asyncio
from collections.abc import Sequence

CHANNEL = "fenceline_ready"


class ReadyLanes:
    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    async def wait(self, lanes: Sequence[str], seconds: float) -> None:
        """Until one of the lanes may have got a job, or so many seconds have passed."""
        event = asyncio.Event()
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

    def hear(self, lane: str) -> None:
        for event in self._waiting.get(lane, ()):
            event.set()
