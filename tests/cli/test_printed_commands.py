"""The commands that the manual prints for operators are run as printed, page by page, on a real queue."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography.fernet import Fernet
from tests.cli.program import Hands
from tests.cli.test_docs import BLOCK, DOCS

from fenceline.cli import main

PRINTED_ID = "0AHZ-DNNY-G000-4VS"
#: They go on until they are stopped, or take half a minute: the tests of each start it.
LONG = {"worker", "server", "runner", "up", "demo", "top", "bench"}
#: Sessions with curl: run whole, by tests/acceptance.
SESSIONS = {"guides/http.md", "guides/runners.md"}


def typed(page: Path) -> list[list[str]]:
    lines = re.findall(r"^fenceline (.*)$", "\n".join(BLOCK.findall(page.read_text("utf-8"))), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines if line.split()[0] not in LONG and "…" not in line]


PAGES = {page.relative_to(DOCS).as_posix(): typed(page) for page in sorted(DOCS.glob("**/*.md"))}
PAGES = {page: lines for page, lines in PAGES.items() if lines and page not in SESSIONS}


def test_the_pages_for_operators_are_among_them() -> None:
    assert {"guides/cli.md", "operations/troubleshooting.md", "operations/retention.md"} <= PAGES.keys()
    assert sum(map(len, PAGES.values())) > 50


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_page_does_its_work(
    page: str, database: str, hands: Hands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCELINE_DSN", database)
    monkeypatch.setenv("FENCELINE_KEYS", Fernet.generate_key().decode())
    monkeypatch.chdir(tmp_path)
    for number in range(3):  # tokens to list and to revoke
        assert run(["token", "create", "--role", "viewer", "--name", f"t{number}"]).exit_code == 0
    for given in PAGES[page]:
        words = [job_for(given, hands) if word == PRINTED_ID else word for word in given]
        done = run(words)
        expected = {0, 1} if words[0] == "doctor" else {0}  # it finds that no worker is there
        assert done.exit_code in expected, f"fenceline {shlex.join(words)}: {done.output} {done.exception}"


def run(words: list[str]) -> Result:
    return CliRunner().invoke(main, words, input="y\n")


def job_for(words: list[str], hands: Hands) -> str:
    """One that the command fits."""
    options: dict[str, Any] = {"run_in": 3600} if "run-now" in words else {}
    job = hands.enqueue("ingest", **options)
    if "-f" in words:  # it follows until the end
        assert run(["jobs", "cancel", job]).exit_code == 0
    return job
