"""The items that a handler works through: in progress, completed, skipped with a reason, failed with an error."""

from collections.abc import Awaitable, Callable
from typing import Any

from fenceline.context.failure import message_of

Move = Callable[[str, list[str], str | None], Awaitable[dict[str, int]]]


class Items:
    """Each verb moves items out of whichever set they are in, atomically, and returns how many each set has.

    They are part of the job's progress and start anew with each phase and attempt. What failed stays on the list of the
    job's `errors` until it is completed after all; a job that returns with such errors is `succeeded_with_errors`.
    """

    def __init__(self, move: Move, phase: Callable[[], str | None]) -> None:
        self._move = move
        self._phase = phase
        self._failed: dict[str, dict[str, Any]] = {}

    async def start(self, *items: str) -> dict[str, int]:
        """These are in progress."""
        return await self._move("in_progress", _checked(items), None)

    async def complete(self, *items: str) -> dict[str, int]:
        """These are done."""
        counts = await self._move("completed", _checked(items), None)
        for item in items:
            self._failed.pop(item, None)
        return counts

    async def skip(self, *items: str, reason: str) -> dict[str, int]:
        """Mark items as skipped, with the `reason`."""
        return await self._move("skipped", _checked(items), str(reason))

    async def fail(self, *items: str, error: str | BaseException) -> dict[str, int]:
        """Mark items as failed, with the `error`: they become the job's `errors`, and the handler goes on."""
        why = f"{type(error).__name__}: {message_of(error)}" if isinstance(error, BaseException) else str(error)
        counts = await self._move("failed", _checked(items), why)
        for item in items:
            self._failed[item] = {"item": item, "error": why, "phase": self._phase()}
        return counts

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What failed so far and was not completed later: item, error and phase."""
        return list(self._failed.values())


def _checked(items: tuple[str, ...]) -> list[str]:
    for item in items:
        if not isinstance(item, str):
            raise TypeError(f"an item is a text, not {item!r}: pass each item as a separate argument")
    return list(items)
