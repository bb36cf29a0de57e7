"""`fenceline top` in a terminal of its own, on the test's database: what somebody who opens it reads there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.program import FENCELINE, Program
from tests.cli.terminal import Terminal

from fenceline.doctor.finding import Finding

#: So that everything fits: the server of the tests is known for findings of its own.
COLUMNS, LINES = 160, 100
TAB, ENTER, ESCAPE = "\t", "\r", "\x1b"
#: A page that is open covers it.
UNCOVERED = "╭─ jobs"


@contextmanager
def open_top(database: str, folder: Path) -> Iterator[Terminal]:
    command = [FENCELINE, "top", "--interval", "60"]  # what is planted is seen at the first look
    environment = Program(folder, database).environment
    with Terminal(command, folder=folder, environment=environment, columns=COLUMNS, lines=LINES) as top:
        top.until("ended per second", "Drain lane")
        yield top
        top.press("q")
        assert top.exit_code() == 0


def read_page(top: Terminal, job: str, *told: str) -> None:
    """Find the job and open its page, which tells this."""
    top.press("/")
    top.until("Show jobs with this word")
    top.press(job)
    top.until_line(f"▊  {job}")
    top.press(ENTER)
    top.until(f"jobs with '{job}'")
    top.press(TAB + ENTER)
    top.until_told("attempt", *told)
    top.press(ESCAPE)
    top.until(UNCOVERED)


def read_finding(top: Terminal, finding: Finding) -> None:
    """It is named in the line of the doctor, and told in full at the press of a key."""
    top.until_line("doctor:", finding.check)
    top.press("f")
    top.until_told(finding.what, f"do: {finding.do}")
    top.press(ESCAPE)
    top.until(UNCOVERED)
