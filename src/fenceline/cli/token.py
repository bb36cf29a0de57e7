"""`fenceline token create|list|revoke`."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fenceline.cli.options import dsn_option

if TYPE_CHECKING:
    from fenceline.client.caller import Caller

T = TypeVar("T")

ACTOR = "command line"
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.group()
def token() -> None:
    """Tokens of the HTTP server."""


def read_expiry(text: str | None) -> datetime | None:
    """`30d`, `12h`, or a moment with its zone."""
    if text is None:
        return None
    if span := re.fullmatch(r"(\d{1,6})([mhdw])", text):
        return datetime.now(UTC) + timedelta(**{_UNITS[span[2]]: int(span[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.utcoffset() is None:
        raise click.BadParameter(
            f"{text!r} is neither a span like 30d, 12h nor a moment like 2026-12-31T00:00:00Z", param_hint="--expires"
        )
    return moment


@token.command()
@dsn_option
@click.option("--role", required=True, help="viewer, producer, operator, runner, platform_admin, or one of your own.")
@click.option("--tenant", help="Whose jobs it may touch; `default` without it.")
@click.option("--name", help="The actor that stands in jobs and in the audit.")
@click.option("--expires", help="When it ends: a span (30d, 12h) or a moment with its zone.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create(
    dsn: str | None,
    role: str,
    tenant: str | None,
    name: str | None,
    expires: str | None,
    as_json: bool,
) -> None:
    """Make a token and print it. It is shown this once; only its hash is kept."""
    from fenceline.database import access_calls  # noqa: PLC0415 - keeps `--help` quick
    from fenceline.model.secret import new_token  # noqa: PLC0415 - as above

    secret, token_hash = new_token()
    made = _run(
        dsn,
        lambda caller: caller.call(
            access_calls.create_token(
                token_hash, role=role, tenant=tenant, name=name, expires_at=read_expiry(expires), actor=ACTOR
            )
        ),
    )
    click.echo(json.dumps({"token": secret, **made}) if as_json else secret)


@token.command(name="list")
@dsn_option
@click.option("--tenant", help="Of this tenant only.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_tokens(dsn: str | None, tenant: str | None, as_json: bool) -> None:
    """Show the tokens, newest first; never their secrets."""
    from rich.console import Console  # noqa: PLC0415 - keeps `--help` quick
    from rich.table import Table  # noqa: PLC0415 - as above

    from fenceline.database import access_calls  # noqa: PLC0415 - as above

    found = _run(dsn, lambda caller: caller.call(access_calls.list_tokens(tenant=tenant, limit=1000)))
    if as_json:
        click.echo(json.dumps(found))
        return
    table = Table()
    columns = ("id", "name", "role", "tenant", "created_at", "expires_at", "revoked_at", "last_used_at")
    for column in columns:
        table.add_column(column)
    for row in found:
        table.add_row(*(_cell(row[column]) for column in columns))
    Console().print(table)


@token.command()
@dsn_option
@click.argument("token_id", metavar="ID", type=int)
def revoke(dsn: str | None, token_id: int) -> None:
    """Revoke a token by the id that `token list` shows. Servers refuse it within about a second."""
    from fenceline.database import access_calls  # noqa: PLC0415 - keeps `--help` quick

    revoked = _run(dsn, lambda caller: caller.call(access_calls.revoke_token(token_id, actor=ACTOR, tenant=None)))
    click.echo(f"token {token_id} ({revoked['name']}) is revoked")


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text[:19].replace("T", " ") if re.match(r"\d{4}-\d\d-\d\dT", text) else text


def _run(dsn: str | None, work: "Callable[[Caller], Awaitable[T]]") -> T:
    from fenceline.client.app import Fenceline  # noqa: PLC0415 - keeps `--help` quick

    async def run() -> T:
        async with Fenceline(dsn) as app:
            return await work(app.caller())

    return asyncio.run(run())
