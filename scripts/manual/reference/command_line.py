"""Every command, from the argument parser."""

import inspect
from collections.abc import Iterator

import click
from scripts.manual.reference.markdown import code, table

from fenceline.cli import SECTIONS, main


def commands() -> Iterator[tuple[str, click.Command]]:
    """As typed, with the command; groups are left out, what is in them is not."""
    for section in SECTIONS.values():
        for name in section:
            yield from below(f"fenceline {name}", main.get_command(click.Context(main), name))


def below(typed: str, command: click.Command | None) -> Iterator[tuple[str, click.Command]]:
    assert command is not None, typed  # noqa: S101 - the table names commands that exist
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from below(f"{typed} {name}", command.get_command(context, name))
    elif not command.hidden:
        yield typed, command


def described(typed: str, command: click.Command) -> str:
    context = click.Context(command, info_name=typed)
    records = [
        record
        for option in command.params
        if isinstance(option, click.Option) and (record := option.get_help_record(context)) and option.name != "help"
    ]
    usage = " ".join([typed, *command.collect_usage_pieces(context)])
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    rows = [[code(names), words] for names, words in records]
    return f"### `{typed}`\n\n{text}\n\n```text\n{usage}\n```\n\n{table(['option', 'what'], rows) if rows else ''}\n"


def page() -> str:
    of_top = {
        section: [described(typed, command) for typed, command in commands() if typed.split()[1] in names]
        for section, names in SECTIONS.items()
    }
    parts = "\n".join(f"## {section}\n\n" + "\n".join(found) for section, found in of_top.items())
    return f"""# Commands

Every command and option, as shown by `--help`. [The command line](../guides/cli.md) shows how to use them. Options that can also be variables or lines of a file are in
[Settings](settings.md).

{parts}
"""
