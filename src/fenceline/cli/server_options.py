"""Flags of the server: every field of its settings that has a `Flag`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import click

from fenceline.cli.option_values import read_names
from fenceline.cli.settings import setting_option
from fenceline.server.server_settings import EdgeSettings, Flag, OidcClient, OidcSettings, ServerSettings, TlsSettings

F = TypeVar("F", bound=Callable[..., Any])

#: Dataclasses of settings, and the prefix of their flags.
PREFIXES: dict[type, str] = {
    ServerSettings: "",
    EdgeSettings: "",
    TlsSettings: "tls_",
    OidcSettings: "oidc_",
    OidcClient: "oidc_",
}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def server_options(command: F) -> F:
    """Add the flags, whose values `read_settings` takes."""
    for settings in reversed(PREFIXES):
        for field, kind, name, flag in reversed([*_flags(settings)]):
            command = setting_option(
                f"server.{name}",
                default=None if field.default is MISSING else "" if field.default == () else field.default,
                # Lists, and whatever a flag has a reader for, come as text.
                type=_FILE if kind is Path or flag.is_file else kind if kind in {bool, int, float} else str,
                is_flag=kind is bool,
                metavar=flag.metavar,
                help=flag.help,
            )(command)
    return command


def read_settings(given: Mapping[str, Any], **others: Any) -> ServerSettings:
    """Raises ValueError, and OSError when a file cannot be read."""
    return ServerSettings(
        **_values(ServerSettings, given),
        edge=EdgeSettings(**_values(EdgeSettings, given)),
        tls=_read_tls(_values(TlsSettings, given)),
        oidc=_read_oidc(_values(OidcSettings, given), _values(OidcClient, given)),
        **others,
    )


def _flags(settings: type) -> Iterator[tuple[Field[Any], Any, str, Flag]]:
    """Each field that has a flag, with its type (without None) and the flag's name."""
    for field in fields(settings):
        hint = get_type_hints(settings, include_extras=True)[field.name]
        for flag in getattr(hint, "__metadata__", ()):
            kind = hint.__origin__
            if isinstance(kind, UnionType):
                kind = next(part for part in get_args(kind) if part is not NoneType)
            yield field, kind, PREFIXES[settings] + (flag.name or field.name), flag


def _values(settings: type, given: Mapping[str, Any]) -> dict[str, Any]:
    values = {}
    for field, kind, name, flag in _flags(settings):
        value = given[name]
        if value is not None and flag.read is not None:
            value = flag.read(value)
        elif value is not None and get_origin(kind) in {tuple, frozenset}:
            value = get_origin(kind)(read_names(value))
        values[field.name] = value
    return values


def _read_tls(values: dict[str, Any]) -> TlsSettings | None:
    cert, client_ca = values["cert"], values["client_ca"]
    if (cert is None) != (values["key"] is None) or (client_ca is not None and cert is None):
        raise ValueError("--tls-cert and --tls-key are given together, and --tls-client-ca with them")
    return None if cert is None else TlsSettings(**values)


def _read_oidc(values: dict[str, Any], client: dict[str, Any]) -> OidcSettings | None:
    missing = [values[name] is None for name in ("jwks_file", "issuer", "audience")]
    if any(missing) and not all(missing):
        raise ValueError("--oidc-jwks, --oidc-issuer and --oidc-audience are given together")
    if client["client_id"] is None:
        return None if any(missing) else OidcSettings(**values)
    if None in client.values():
        raise ValueError("--oidc-client-id takes --oidc-client-secret-file, --oidc-authorize-url and --oidc-token-url")
    if any(missing):
        raise ValueError("--oidc-client-id takes --oidc-jwks, --oidc-issuer and --oidc-audience")
    return OidcSettings(**values, client=OidcClient(**client))
