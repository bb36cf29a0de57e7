"""A broken variant of a function, and the scenario that must notice.

A mutant is a replacement in the text of the real file. The text must occur exactly once: when a function changes, its
mutants break loudly instead of testing nothing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from tests.sql.queue import open_queue
from tests.sql.sessions import Connect

from fenceline.database.schema_files import read_schema_files

Scenario = Callable[[Connect], Awaitable[None]]
#: Who must notice: a scenario, a short run of the machine with open transactions, or (None) of the one with the model.
Judge = Scenario | Literal["open_machine"] | None


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    function: str
    replacements: tuple[tuple[str, str], ...]
    caught_by: Judge
    prepare: str = ""  # SQL that has to run first

    def sql(self) -> str:
        """The broken function. Raises ValueError when the real one no longer reads as expected."""
        [text] = [file.text for file in read_schema_files().code if file.name == self.function]
        for old, new in self.replacements:
            if text.count(old) != 1:
                raise ValueError(
                    f"mutant {self.name}: {self.function}.sql has {text.count(old)} times, not once: {old}"
                )
            text = text.replace(old, new)
        return self.prepare + text


def mutant(
    name: str, function: str, old: str, new: str, caught_by: Judge, *more: tuple[str, str], prepare: str = ""
) -> Mutant:
    return Mutant(name, function, ((old, new), *more), caught_by, prepare)


def on_queue(test: Callable[..., Awaitable[None]], **parameters: object) -> Scenario:
    """A test with the fixture `queue`, as a scenario."""

    async def scenario(connect: Connect) -> None:
        await test(await open_queue(await connect()), **parameters)

    scenario.__name__ = test.__name__
    return scenario
