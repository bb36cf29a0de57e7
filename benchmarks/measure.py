"""Rounds, medians and the table: what all measurements share."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from typing import Literal

from rich.console import Console
from rich.table import Table

Work = Callable[[], Awaitable[None]]
Prepare = Callable[[], Awaitable[Work]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much to do."""

    quick: bool

    def rounds(self, full: int) -> int:
        return max(3, full // 10) if self.quick else full


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One line of the table. The target is for the ratio where there is one, else for our own figure.

    A result without target is there to compare by.
    """

    measurement: str
    unit: str
    ours: float
    target: float | None = None
    bare: float | None = None
    ratio: float | None = None
    bound: Literal["at least", "at most"] = "at least"
    note: str = ""

    @property
    def ok(self) -> bool:
        if self.target is None:
            return True
        figure = self.ours if self.ratio is None else self.ratio
        return figure >= self.target if self.bound == "at least" else figure <= self.target


async def alternate(ours: Prepare, bare: Prepare, *, rounds: int, jobs: int) -> tuple[float, float, float]:
    """Jobs per second of both sides, and ours in relation to bare.

    A round runs both, now this first, now that, each prepared just before and outside the clock. The ratio is
    the median of the rounds' ratios: a neighbour's burst of work hits both sides of a round, or spoils one.
    """
    ours_seconds: list[float] = []
    bare_seconds: list[float] = []
    for number in range(rounds):
        for prepare, seconds in (
            ((ours, ours_seconds), (bare, bare_seconds)) if number % 2 else ((bare, bare_seconds), (ours, ours_seconds))
        ):
            work = await prepare()
            started = time.perf_counter()
            await work()
            seconds.append(time.perf_counter() - started)
    ratios = [b / o for o, b in zip(ours_seconds, bare_seconds, strict=True)]
    return jobs / median(ours_seconds), jobs / median(bare_seconds), median(ratios)


async def interleave(ours: Work, bare: Work, *, steps: int) -> tuple[float, float]:
    """Median seconds of a step of each side, step by step in turn: as close to the same moment as can be."""
    seconds: dict[Work, list[float]] = {ours: [], bare: []}
    for number in range(steps):
        for step in (ours, bare) if number % 2 else (bare, ours):
            started = time.perf_counter()
            await step()
            seconds[step].append(time.perf_counter() - started)
    return median(seconds[ours]), median(seconds[bare])


def print_table(results: list[Result], *, title: str) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("measurement")
    for heading in ("ours", "bare", "ratio", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for result in results:
        table.add_row(
            result.measurement + (f"\n  {result.note}" if result.note else ""),
            f"{result.ours:,.0f} {result.unit}",
            "" if result.bare is None else f"{result.bare:,.0f} {result.unit}",
            "" if result.ratio is None else f"{result.ratio:.2f}",
            _target(result),
            "" if result.target is None else "ok" if result.ok else "MISSED",
        )
    console = Console()
    # In a pipe or a file nobody says how wide it is.
    Console(width=None if console.is_terminal else 140).print(table)


def _target(result: Result) -> str:
    if result.target is None:
        return ""
    sign = "≥" if result.bound == "at least" else "≤"
    figure = f"{result.target:,.0f} {result.unit}" if result.ratio is None else f"{result.target:.2f}"
    return f"{sign} {figure}"
