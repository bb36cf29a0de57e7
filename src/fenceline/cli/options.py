"""Options that several commands share, the two ways a command reaches its queue, and which token it sends there."""

import functools
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from fenceline.cli.settings import SettingsFile, setting_option

F = TypeVar("F", bound=Callable[..., Any])

#: Where a value can come from, the strongest first. Without any of them there is no value.
_STRENGTH = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)
_TWO_QUEUES = "both a database (--dsn, FENCELINE_DSN) and a server (--url, FENCELINE_URL) are given: use one of them"
_TWO_TOKENS = "both --token and --token-file are given: use one of them"

dsn_option = setting_option(
    "dsn", secret=True, help="PostgreSQL database; without one, an embedded one in ./.fenceline/."
)
url_option = setting_option("url", help="Fenceline server, instead of a database.")
token_option = setting_option(
    "token", secret=True, help="Bearer token for the server; --token-file keeps it out of the process list."
)
token_file_option = setting_option("token_file", help="File with the bearer token, readable only by you.")


def _refused(message: str) -> Callable[[click.Context, click.Parameter, object], None]:
    def refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:
        if value is not None:
            raise click.ClickException(f"{param.opts[0]}: `{ctx.command_path}` {message}")

    return refuse


def not_over_http(function: F) -> F:
    """For commands that work on a database only: `--url` and `--token` are refused with one line that says so."""
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
        source = _stronger(ctx, {"dsn": dsn, "url": url}, _TWO_QUEUES)
        token = find_token(ctx, token, token_file) if source == "url" else None

        async def work() -> None:
            async with open_queue(dsn=dsn or None, url=url if source == "url" else None, token=token) as queue:
                await function(queue, *args, **kwargs)

        asyncio.run(work())

    return dsn_option(url_option(token_option(token_file_option(run))))


def with_app(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Like `with_queue`, for what only a database can do: the first parameter is a `Fenceline`. Adds `--dsn`."""

    @functools.wraps(function)
    def run(*args: Any, dsn: str | None, **kwargs: Any) -> None:
        import asyncio

        from fenceline.app import Fenceline

        async def work() -> None:
            async with Fenceline(dsn) as app:
                await function(app, *args, **kwargs)

        asyncio.run(work())

    return dsn_option(not_over_http(run))


def find_token(ctx: click.Context, token: str | None, token_file: str | None) -> str | None:
    """The token to send to the server: given itself, or in a file."""
    name = _stronger(ctx, {"token": token, "token_file": token_file}, _TWO_TOKENS)
    if name is None:
        return None
    _refuse_foreign_server(ctx, name)
    return token if name == "token" else read_token(Path(token_file or ""))


def read_token(path: Path) -> str:
    """Raises ClickException."""
    try:
        found = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"--token-file {path} cannot be read: {error}") from error
    if not found:
        raise click.ClickException(f"--token-file {path} is empty")
    return found


def _stronger(ctx: click.Context, values: Mapping[str, str | None], conflict: str) -> str | None:
    """Which of two options counts: a flag before the environment before the file. Raises ClickException on a tie."""
    sources = {name: ctx.get_parameter_source(name) for name, value in values.items() if value}
    if len(set(sources.values())) < len(sources):
        raise click.ClickException(conflict)
    return min(sources, key=lambda name: _STRENGTH.index(sources[name]), default=None)


def _refuse_foreign_server(ctx: click.Context, name: str) -> None:
    """A settings file that merely lies in the current folder must not choose where a token from elsewhere is sent:
    whoever wrote it would get the token of everybody who runs a command there.
    """
    from_folder = ctx.get_parameter_source("url") is ParameterSource.DEFAULT_MAP and SettingsFile.of(ctx).is_found
    if from_folder and ctx.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP:
        file = SettingsFile.of(ctx).path
        raise click.ClickException(
            f"the server {ctx.params.get('url')} comes from ./{file}, but the token does not, so it is not sent there. "
            f"If you trust that server, name it with --url (or FENCELINE_URL), or pass --config {file}"
        )
