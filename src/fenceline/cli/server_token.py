"""Which token goes to which server."""

from pathlib import Path

import click
from click.core import ParameterSource

from fenceline.cli.settings import SettingsFile

_STRENGTH = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)


def find_token(ctx: click.Context, token: str | None, token_file: str | None) -> str | None:
    """The token for the server of this call: given, or in a file; the one that was said more strongly."""
    name = _stronger(ctx, token, token_file)
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


def _stronger(ctx: click.Context, token: str | None, token_file: str | None) -> str | None:
    given = [name for name, value in (("token", token), ("token_file", token_file)) if value]
    if len(given) < 2:  # noqa: PLR2004 - both
        return given[0] if given else None
    by_token, by_file = (_strength(ctx, name) for name in given)
    if by_token == by_file:
        raise click.ClickException("both --token and --token-file are given: use one of them")
    return "token" if by_token < by_file else "token_file"


def _strength(ctx: click.Context, name: str) -> int:
    source = ctx.get_parameter_source(name)
    return _STRENGTH.index(source) if source in _STRENGTH else len(_STRENGTH)


def _refuse_foreign_server(ctx: click.Context, name: str) -> None:
    """A folder must not choose where a token goes that does not stand in it: whoever wrote its settings file would get
    the token of everybody who starts the program there.
    """
    from_folder = ctx.get_parameter_source("url") is ParameterSource.DEFAULT_MAP and SettingsFile.of(ctx).is_found
    if from_folder and ctx.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP:
        file = SettingsFile.of(ctx).path
        raise click.ClickException(
            f"the server {ctx.params.get('url')} comes from ./{file}, but the token does not, so it is not sent there. "
            f"If you trust that server, name it with --url (or FENCELINE_URL), or pass --config {file}"
        )
