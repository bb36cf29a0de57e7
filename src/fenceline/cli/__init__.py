"""The command line: one file per command family, imported when the command is used."""

import importlib

import click

# Command → module that has a click command of that name. Imported when used, so that `--help` is quick.
COMMANDS = {
    "migrate": "fenceline.cli.schema",
    "schedules": "fenceline.cli.schedules",
    "server": "fenceline.cli.server",
    "sql": "fenceline.cli.schema",
    "token": "fenceline.cli.token",
    "up": "fenceline.cli.up",
    "worker": "fenceline.cli.worker",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 - a mistake in the table above
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Errors of ours are one clear line, no traceback."""
        from fenceline.errors import FencelineError  # noqa: PLC0415 - keeps `--help` quick

        try:
            return super().invoke(ctx)
        except FencelineError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fenceline")
def main() -> None:
    """Fenceline: a PostgreSQL-native job queue for jobs that matter."""
