"""Waiting for something, but not for ever."""

import asyncio


async def wait_for_event(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait until the event is set, at most this long; whether it was set."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
