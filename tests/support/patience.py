"""How long a test waits for something that must come: as long as the test may take, whatever the machine.

A bound of a poller's own would be a claim about the machine's speed. The limit is that of pytest-timeout; a poller
gives up shortly before it, because it can say what it was waiting for and what it saw last.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import pytest

#: For the failure's message, and for the fixtures to end what the test has started.
KEPT_SECONDS = 15.0

_gives_up_at = float("inf")


def begin_test(item: pytest.Item) -> None:
    """From now on the test runs; `tests/conftest.py` calls this."""
    global _gives_up_at  # noqa: PLW0603 - one test at a time runs in a process
    marker = item.get_closest_marker("timeout")
    seconds = float(marker.args[0] if marker else item.config.getini("timeout"))
    _gives_up_at = time.monotonic() + seconds - KEPT_SECONDS


def seconds_left() -> float:
    """What the running test may still wait: for calls that take a timeout."""
    return max(0.0, _gives_up_at - time.monotonic())


def give_up(what: str, last: object) -> NoReturn:
    raise AssertionError(f"it never came while the test had time: {what}. Last seen: {last}")


async def eventually(
    condition: Callable[[], Awaitable[Any]], what: str, last: Callable[[], object] | None = None
) -> Any:
    """Wait until a condition holds; its value is returned. `last` says more than the condition's value, if it is to."""
    while not (value := await condition()):
        if seconds_left() == 0.0:
            give_up(what, last() if last else value)
        await asyncio.sleep(0.02)
    return value


def eventually_blocking(condition: Callable[[], Any], what: str, last: Callable[[], object] | None = None) -> Any:
    """As `eventually`, for tests without an event loop."""
    while not (value := condition()):
        if seconds_left() == 0.0:
            give_up(what, last() if last else value)
        time.sleep(0.02)
    return value


async def come(event: asyncio.Event, what: str, last: Callable[[], object] | None = None) -> None:
    """Wait for an event of this process."""
    try:
        async with asyncio.timeout(seconds_left()):
            await event.wait()
    except TimeoutError:
        give_up(what, last() if last else "nothing")
