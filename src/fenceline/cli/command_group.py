"""Groups of commands that know what a mistyped one was meant to be, whatever the version of click."""

import click


class CommandGroup(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        given = args[0] if args else ""
        if given and not given.startswith("-") and self.get_command(ctx, given) is None:
            import difflib

            close = difflib.get_close_matches(given, self.list_commands(ctx), n=1)
            meant = f" Did you mean '{ctx.command_path} {close[0]}'?" if close else ""
            ctx.fail(f"No such command '{given}'.{meant}")
        return super().resolve_command(ctx, args)
