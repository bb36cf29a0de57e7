"""Shows on the board when a handler has its turn on the event loop, so that one that does not give it back is known."""

from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from fenceline.engine.running_attempt import RunningAttempt
from fenceline.engine.running_board import RunningBoard

T = TypeVar("T")


class Turns:
    """Awaits a coroutine, with every one of its turns noted. Those of tasks that the handler starts are not."""

    __slots__ = ("_board", "_coroutine", "_execution")

    def __init__(self, coroutine: Coroutine[Any, Any, T], running: RunningAttempt, board: RunningBoard) -> None:
        self._coroutine = coroutine
        self._execution = running
        self._board = board

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine, running, board = self._coroutine, self._execution, self._board
        value: Any = None
        error: BaseException | None = None
        while True:
            board.enter(running.place)
            try:
                awaited = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration as returned:
                return returned.value
            finally:
                board.enter(None)
            value, error = None, None
            try:
                value = yield awaited
            except BaseException as thrown:  # noqa: BLE001 - the coroutine's to deal with, GeneratorExit too
                error = thrown
