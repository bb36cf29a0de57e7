"""Figures of tests marked `timing`: measured, compared with a bound, and shown in a table by `make timing`."""

from collections.abc import Iterable

import pytest
from rich.console import Console
from rich.markup import escape
from rich.table import Table


class Figures:
    """The figures of one test: each is kept for the table, then checked."""

    def __init__(self, node: pytest.Item) -> None:
        self._kept = node.user_properties

    def at_most(self, what: str, measured: float, bound: float, unit: str = "s") -> None:
        self._kept.append(("figure", f"{what}|{measured:.4g} {unit}|≤ {bound:g}"))
        assert measured <= bound, f"{what}: {measured:g} {unit}, at most {bound:g}"

    def at_least(self, what: str, measured: float, bound: float, unit: str = "s") -> None:
        self._kept.append(("figure", f"{what}|{measured:.4g} {unit}|≥ {bound:g}"))
        assert measured >= bound, f"{what}: {measured:g} {unit}, at least {bound:g}"


def print_table(reports: Iterable[pytest.TestReport]) -> None:
    """Every test with its time and its figures."""
    table = Table("test", "outcome", "took", "figure", "measured", "bound", title="Figures")
    for report in reports:
        test = [escape(report.nodeid), report.outcome, f"{report.duration:.1f} s"]
        for figure in [str(value) for name, value in report.user_properties if name == "figure"] or [""]:
            table.add_row(*test, *figure.split("|"))
            test = ["", "", ""]
    Console(width=200).print(table)
