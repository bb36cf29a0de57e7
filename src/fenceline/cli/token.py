"""`fenceline token create|list|revoke`."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fenceline.cli.command_group import CommandGroup
from fenceline.cli.option_values import read_moment, read_names, read_span
from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import echo, print_json, print_table, table, text
from fenceline.model.secret_file import write_secret

if TYPE_CHECKING:
    from fenceline.cli.queue import Queue
    from fenceline.model.secret import Expiry


@click.group(cls=CommandGroup)
def token() -> None:
    """Tokens of the HTTP server."""


def read_expiry(_ctx: click.Context, _param: click.Parameter, text: str | None) -> "Expiry":
    """From `30d`, `12h`, `never`, or a time with its zone."""
    if text is None:
        return None
    if text == "never":
        return "never"
    try:
        span = read_span(text)
        moment = read_moment(text) if span is None else datetime.now(UTC) + span
    except OverflowError:
        moment = None
    if moment is None:
        raise click.BadParameter(
            f"{text!r} is neither a span like 30d, 12h nor a moment like 2026-12-31T00:00:00Z", param_hint="--expires"
        )
    return moment


def read_restriction(_ctx: click.Context, _param: click.Parameter, text: str | None) -> list[str] | None:
    return None if text is None else read_names(text)


@token.command()
@click.option(
    "--role",
    required=True,
    help="viewer, producer, operator, fleet_operator, runner, platform_admin, or one of your own.",
)
@click.option("--tenant", help="Its tenant; default: `default`, or your own over a server.")
@click.option("--name", help="Name shown as the actor in jobs and in the audit log.")
@click.option(
    "--expires",
    "expires_at",
    callback=read_expiry,
    help="When it expires: after 30d or 12h, at a time with its zone, or never; default: 90d.",
)
@click.option("--lanes", callback=read_restriction, help="Restrict it to these lanes, separated by commas.")
@click.option("--kinds", callback=read_restriction, help="Restrict it to these kinds, separated by commas.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file, not to the screen."
)
@json_option
@with_queue
async def create(queue: "Queue", out: Path | None, as_json: bool, **settings: Any) -> None:
    """Make a token and print it. It is shown this once; only its hash is kept."""
    made = await queue.create_token(**settings)
    if out is not None:
        write_secret(out, made.pop("token"))
        click.echo(json.dumps(made) if as_json else f"token {made['id']} is in {out}")
    else:
        click.echo(json.dumps(made) if as_json else made["token"])


@token.command(name="list")
@click.option("--tenant", help="List only tokens of this tenant.")
@json_option
@with_queue
async def list_tokens(queue: "Queue", tenant: str | None, as_json: bool) -> None:
    """Show the tokens, newest first; never their secrets."""
    found = await queue.tokens(tenant)
    if as_json:
        print_json({"items": found})
        return
    columns = ("id", "name", "role", "tenant", "created_at", "expires_at", "revoked_at", "last_used_at")
    rows = table(*(column.upper().replace("_", " ") for column in columns), right=("ID",))
    for row in found:
        rows.add_row(*(text(_cell(row[column])) for column in columns))
    print_table(rows, first_to_go=("LAST USED AT", "CREATED AT", "REVOKED AT"))


@token.command()
@click.argument("token_id", metavar="ID", type=int)
@with_queue
async def revoke(queue: "Queue", token_id: int) -> None:
    """Revoke a token by the id that `token list` shows. Servers refuse it within about a second."""
    name = await queue.revoke_token(token_id)
    echo(f"token {token_id} is revoked" if name is None else f"token {token_id} ({name}) is revoked")


def _cell(value: Any) -> str:
    shown = "" if value is None else str(value)
    return shown[:19].replace("T", " ") if re.match(r"\d{4}-\d\d-\d\dT", shown) else shown
