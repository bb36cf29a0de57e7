"""Options that several commands share, and the two ways a command gets at its queue."""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from fenceline.cli.server_token import find_token
from fenceline.cli.settings import setting_option

F = TypeVar("F", bound=Callable[..., Any])

dsn_option = setting_option(
    "--dsn", key="dsn", secret=True, help="PostgreSQL database; without one, an embedded one in ./.fenceline/."
)
url_option = setting_option("--url", key="url", help="Fenceline server, instead of a database.")
token_option = setting_option(
    "--token",
    key="token",
    secret=True,
    help="Bearer token for the server; --token-file keeps it out of the process list.",
)
token_file_option = setting_option(
    "--token-file", key="token_file", help="File with the bearer token, readable only by you."
)


def _refused(message: str) -> Callable[[click.Context, click.Parameter, object], None]:
    def refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:
        if value is not None:
            raise click.ClickException(f"{param.opts[0]}: `{ctx.command_path}` {message}")

    return refuse


def not_over_http(function: F) -> F:
    """For commands that are about a database: `--url` and `--token` are answered with one line that says so."""
    refuse = _refused("works on a database only: give --dsn (or FENCELINE_DSN), or nothing for the embedded one")
    for name in ("--token-file", "--token", "--url"):
        option = click.option(name, hidden=True, expose_value=False, is_eager=True, callback=refuse, help="Refused.")
        function = option(function)
    return function


#: For the runner, which has no way to a database.
not_over_sql = click.option(
    "--dsn",
    hidden=True,
    expose_value=False,
    is_eager=True,
    callback=_refused("reaches the queue over HTTP only: give --url and --token of a server"),
    help="Refused.",
)
#: On every reading command. The parameter is `as_json`.
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
#: On every command that may ask. The parameter is `yes`.
yes_option = click.option("--yes", "-y", is_flag=True, help="Do it without asking.")


def with_queue(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make an async function, whose first parameter is a `Queue`, a command over SQL or HTTP.

    Adds `--dsn`, `--url`, `--token` and `--token-file`:

    @click.command()
    @with_queue
    async def depth(queue: Queue) -> None: ...
    """

    @functools.wraps(function)
    def run(
        *args: Any, dsn: str | None, url: str | None, token: str | None, token_file: str | None, **kwargs: Any
    ) -> None:
        import asyncio

        from fenceline.cli.queue import open_queue

        ctx = click.get_current_context()
        chosen = choose(ctx, dsn, url)
        token = None if chosen[1] is None else find_token(ctx, token, token_file)

        async def work() -> None:
            async with open_queue(dsn=chosen[0], url=chosen[1], token=token) as queue:
                await function(queue, *args, **kwargs)

        asyncio.run(work())

    return dsn_option(url_option(token_option(token_file_option(run))))


def with_app(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """As `with_queue` for what only a database can do: the first parameter is a `Fenceline`. Adds `--dsn`."""

    @functools.wraps(function)
    def run(*args: Any, dsn: str | None, **kwargs: Any) -> None:
        import asyncio

        from fenceline.client.app import Fenceline

        async def work() -> None:
            async with Fenceline(dsn) as app:
                await function(app, *args, **kwargs)

        asyncio.run(work())

    return dsn_option(not_over_http(run))


def choose(ctx: click.Context, dsn: str | None, url: str | None) -> tuple[str | None, str | None]:
    """A database or a server: the one that was said more strongly, a flag before the environment before the file."""
    if not dsn or not url:
        return dsn or None, url or None
    order = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)
    by_dsn, by_url = (
        order.index(source) if (source := ctx.get_parameter_source(name)) in order else len(order)
        for name in ("dsn", "url")
    )
    if by_dsn == by_url:
        raise click.ClickException(
            "both a database (--dsn, FENCELINE_DSN) and a server (--url, FENCELINE_URL) are given: use one of them"
        )
    return (dsn, None) if by_dsn < by_url else (None, url)
