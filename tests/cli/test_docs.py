"""What the manual tells people to type exists, and the settings file that docs/guides/cli.md shows is a good one."""

import re
import shlex
from pathlib import Path

import click
import pytest
from tests.cli.program import Program

from fenceline.cli import main

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "guides" / "cli.md").read_text()
BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = sorted(
    {
        line.split(" &")[0]
        for page in DOCS.glob("**/*.md")
        for block in BLOCK.findall(page.read_text())
        for line in re.findall(r"^(fenceline .*)$", block, re.MULTILINE)
        if not line.endswith(("running", "\\")) and "|" not in line and "$(" not in line
    }
)


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


def test_there_are_commands_in_the_docs() -> None:
    assert len(TYPED) > 15


def test_the_settings_file_of_the_docs(tmp_path: Path) -> None:
    block = re.search(r"```toml\n(.*?)```", TEXT, flags=re.DOTALL)
    assert block is not None
    (tmp_path / "fenceline.toml").write_text(block[1])
    found = {row["key"]: row["value"] for row in Program(tmp_path, None)("config", "--json").json["settings"]}
    assert found["worker.lanes"] == "default,reports"
    assert found["server.port"] == 8400
