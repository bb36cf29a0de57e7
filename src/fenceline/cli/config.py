"""`fenceline config`: every setting with its value and where it came from."""

import os
from typing import Any

import click

from fenceline.cli.options import dsn_option, json_option, token_file_option, token_option, url_option
from fenceline.cli.output import console, print_json, table, text
from fenceline.cli.settings import PLAIN_VARIABLES, Setting, SettingsFile, config_option, origin, settings_of, variable
from fenceline.database.dsn import without_password


@click.command()
@config_option
@dsn_option
@url_option
@token_option
@token_file_option
@json_option
@click.pass_context
def config(ctx: click.Context, /, as_json: bool, **_shared: Any) -> None:
    """Print every setting, its value and its source.

    Passwords and tokens are hidden.
    """
    rows = [_row(ctx, param) for param in ctx.command.params if isinstance(param, Setting)]
    root = ctx.find_root().command
    assert isinstance(root, click.Group)  # noqa: S101 - it has this command
    for name in root.list_commands(ctx):
        rows += [_row(ctx, setting) for setting in settings_of(ctx, name).values()]
    for key, (name, default) in PLAIN_VARIABLES.items():
        value = os.environ.get(name)
        shown = without_password(value) if value and key.endswith("url") else value or default
        rows.append({"key": key, "value": shown, "source": name if value else "default"})
    file = SettingsFile.of(ctx).path
    if as_json:
        print_json({"file": None if file is None else str(file.resolve()), "settings": rows})
        return
    lines = table("SETTING", "VALUE", "FROM")
    for row in rows:
        source = text(row["source"])
        lines.add_row(text(row["key"]), _shown(row["value"]), f"[dim]{source}[/]" if source == "default" else source)
    console().print(lines)
    click.echo(f"file: {file}" if file else "no settings file", err=True)


def _row(ctx: click.Context, setting: Setting) -> dict[str, Any]:
    if setting in ctx.command.params:
        value, source = ctx.params[setting.name or ""], ctx.get_parameter_source(setting.name or "")
    else:
        value, source = setting.effective(ctx)
    return {
        "key": setting.key,
        "value": redacted(setting, value),
        "source": origin(setting, ctx, source),
        "variable": variable(setting.key),
    }


def redacted(setting: Setting, value: Any) -> Any:
    """A secret without its secret part: of the URL of a database, the server and the user stay."""
    return without_password(str(value)) if setting.secret and value else value


def _shown(value: Any) -> str:
    return "[dim]not set[/]" if value is None else text(value)
