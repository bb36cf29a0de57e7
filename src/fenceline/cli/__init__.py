"""The command line: one file per command family, imported when the command is used.

A command talks to a `Queue` (`queue.py`): over SQL to the client's own parts (`direct.py`, with `--dsn`), over HTTP to
parts with the same methods (`remote.py`, with `--url`). It prints through `output.py`: tables for people, JSON for
programs. Options that many commands share are in `options.py`, their values from files and the environment come by way
of `settings.py`, and `exception_text.py` turns errors into one line.
"""

import contextlib
import importlib
import io
import sys
from collections.abc import Iterator
from typing import Any

import click

from fenceline.cli.command_group import CommandGroup
from fenceline.cli.hangup import end_in_order_on_hangup
from fenceline.cli.settings import SettingsFile, config_option

# Section of `--help` → command → the module that has a click command of that name, and its line in `--help`. Modules
# are imported when their command is used, so that `--help` is quick; a test compares the lines with the docstrings.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Run": {
        "up": ("fenceline.cli.up", "Start everything in this folder."),
        "demo": ("fenceline.cli.demo", "Kill and freeze workers, and lose nothing."),
        "worker": ("fenceline.cli.worker", "Run the jobs of APP."),
        "server": ("fenceline.cli.server", "Serve HTTP until SIGTERM or Ctrl-C."),
        "runner": ("fenceline.cli.runner", "Run the jobs of APP over HTTP only."),
    },
    "Watch and control": {
        "enqueue": ("fenceline.cli.enqueue", "Enqueue a job of KIND, and print its id."),
        "depth": ("fenceline.cli.enqueue", "Print how many jobs a worker could start now."),
        "jobs": ("fenceline.cli.jobs", "See jobs, and cancel, retry, approve or move them."),
        "lanes": ("fenceline.cli.lanes", "See and change lanes: budgets of slots."),
        "locks": ("fenceline.cli.locks", "List the locks, resource locks and keys in use, and who waits."),
        "stats": ("fenceline.cli.stats", "Backlog, active jobs, errors, throughput and slow jobs, with bars."),
        "workers": ("fenceline.cli.workers", "List workers and the jobs they hold."),
        "schedules": ("fenceline.cli.schedules", "List, change, pause and run schedules."),
        "top": ("fenceline.cli.top", "Watch lanes, jobs and workers live, and steer them."),
        "drain": ("fenceline.cli.workers", "Refuse new jobs from outside."),
        "resume": ("fenceline.cli.workers", "Accept new jobs again."),
    },
    "Set up and maintain": {
        "migrate": ("fenceline.cli.migrate", "Bring the database's schema up to date."),
        "token": ("fenceline.cli.token", "Tokens of the HTTP server."),
        "doctor": ("fenceline.cli.doctor", "Find problems, and say what to do about them."),
        "bench": ("fenceline.cli.bench", "Measure the speed of this database."),
        "prune": ("fenceline.cli.upkeep", "Delete finished jobs past their retention."),
        "sweep": ("fenceline.cli.upkeep", "Return the jobs of dead workers to the queue."),
        "rekey": ("fenceline.cli.upkeep", "Re-encrypt everything with the newest key."),
        "retention": ("fenceline.cli.upkeep", "Show or set how long finished jobs are kept."),
        "limits": ("fenceline.cli.upkeep", "Show or set how many unfinished jobs a tenant may have."),
        "approval": ("fenceline.cli.upkeep", "Show or set who may approve jobs that need it."),
        "sql": ("fenceline.cli.migrate", "Print the whole schema as SQL."),
        "config": ("fenceline.cli.config", "Print every setting, its value and its source."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}

INTERRUPTED = 130  # as shells report a program that Ctrl-C ended


class WrongUsage(click.ClickException):
    """A usage error of click in one line, like every other error."""

    exit_code = click.UsageError.exit_code


@contextlib.contextmanager
def usage_in_one_line() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # in newer versions of click, a group without a command
            raise
        path = error.ctx.command_path if error.ctx else "fenceline"
        message = " ".join(error.format_message().split())
        raise WrongUsage(f"{message} (see `{path} --help`)") from error


class LazyGroup(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 - a mistake in the table above
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        width = max(map(len, COMMANDS))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in commands.items()])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        print_whatever_the_locale()
        with usage_in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        """Errors that people can do something about become one clear line, without a traceback."""
        try:
            with usage_in_one_line():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except Exception as error:
            from fenceline.cli.exception_text import one_line

            line = one_line(error)
            if line is None:
                raise
            raise click.ClickException(line) from error


def print_whatever_the_locale() -> None:
    """A character that the terminal's encoding lacks must not end a command in the middle of a table."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fenceline")
@config_option
@click.pass_context
def main(ctx: click.Context) -> None:
    """Fenceline: a PostgreSQL-native job queue for jobs that matter.

    Every command has --help. Settings come from flags, FENCELINE_… variables, and fenceline.toml or [tool.fenceline] in
    pyproject.toml; `fenceline config` shows them.
    """
    end_in_order_on_hangup()
    SettingsFile.of(ctx)  # made here, in the outermost context, so that all commands share it
