"""Groups that suggest a command for a mistyped one, with any version of click."""

import click


class CommandGroup(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            import difflib

            close = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            suggestion = f" Did you mean '{ctx.command_path} {close[0]}'?" if close else ""
            ctx.fail(f"No such command '{name}'.{suggestion}")
        return super().resolve_command(ctx, args)
