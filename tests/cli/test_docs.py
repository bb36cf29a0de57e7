"""What the manual tells people to type exists, and the settings file that docs/guides/cli.md shows is a good one."""

import re
import shlex
from pathlib import Path

import click
import pytest
from tests.cli.program import Program

from fenceline.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TEXT = (DOCS / "guides/cli.md").read_text()
PAGES = [ROOT / "README.md", *DOCS.rglob("*.md"), *ROOT.glob("examples/*/README.md")]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = sorted(
    {
        line.split(" &")[0]
        for page in PAGES
        for block in BLOCK.findall(page.read_text())
        for line in re.findall(r"^(fenceline .*)$", block, re.MULTILINE)
        if not line.endswith(("running", "\\")) and "|" not in line and "$(" not in line
    }
)

#: Named in a sentence or a table: `fenceline jobs show`, `fenceline stats backlog|active`, `fenceline enqueue …`.
NAMED = sorted({code for page in PAGES for code in re.findall(r"`(fenceline [^`]+)`", page.read_text())})


@pytest.mark.parametrize("line", TYPED)
def test_a_command_of_the_docs_exists(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command = found
    # As typed: an option that does not exist is refused here, before anything would be done.
    command.make_parser(click.Context(command)).parse_args(words)


@pytest.mark.parametrize("code", NAMED)
def test_a_command_that_is_named_exists(code: str) -> None:
    commands: list[click.Command | None] = [main]
    for word in code.split()[1:]:
        command = commands[0]
        if not isinstance(command, click.Group) or not word[0].isalpha():
            break
        commands = [command.get_command(click.Context(command), name) for name in word.split("|")]
        assert None not in commands


def test_there_are_commands_in_the_docs() -> None:
    assert len(TYPED) > 15
    assert len(NAMED) > 50


def test_the_settings_file_of_the_docs(tmp_path: Path) -> None:
    block = re.search(r"```toml\n(.*?)```", TEXT, flags=re.DOTALL)
    assert block is not None
    (tmp_path / "fenceline.toml").write_text(block[1])
    found = {row["key"]: row["value"] for row in Program(tmp_path, None)("config", "--json").json["settings"]}
    assert found["worker.lanes"] == "default,reports"
    assert found["server.port"] == 8400
