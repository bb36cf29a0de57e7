"""Settings: options that the environment and a TOML file can give too.

Strength, from the strongest: flag, environment (`FENCELINE_…`), file, default. The file is the one that `--config` (or
`FENCELINE_CONFIG`) names, else `fenceline.toml`, else the table `[tool.fenceline]` of `pyproject.toml`, in the current
folder. The setting `worker.processes` is the flag `--processes` of `fenceline worker`, the variable
`FENCELINE_WORKER_PROCESSES`, and `processes` in the table `[worker]`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

F = TypeVar("F", bound=Callable[..., Any])

_META = "fenceline.settings_file"
FILE_NAME = "fenceline.toml"


class SettingsFile:
    """The TOML file of this call, if there is one; read when the first setting asks."""

    def __init__(self, given: Path | None = None) -> None:
        self._given = given
        self._values: dict[str, Any] | None = None
        self.path: Path | None = None

    @property
    def is_found(self) -> bool:
        """Whether nobody named it: it lies in the folder where the program was started."""
        return self.path is not None and self._given is None

    @classmethod
    def of(cls, ctx: click.Context) -> "SettingsFile":
        """The one that belongs to this call of the program."""
        found = ctx.meta.setdefault(_META, cls())
        assert isinstance(found, cls)  # noqa: S101 - the key is this module's own
        return found

    def get(self, ctx: click.Context, key: str) -> Any:
        """The value of a setting, or None. Raises ClickException when the file cannot be read or has unknown keys."""
        if self._values is None:
            self._values = self._read()
            self._refuse_unknown(ctx, self._values)
        section, _, name = key.rpartition(".")
        table = self._values.get(section, {}) if section else self._values
        return table.get(name)

    def _read(self) -> dict[str, Any]:
        for path, tables in ((self._given, ()), (Path(FILE_NAME), ()), (Path("pyproject.toml"), ("tool", "fenceline"))):
            if path is None:
                continue
            try:
                text = path.read_text()
            except FileNotFoundError:
                if path is self._given:
                    raise click.ClickException(f"{path} does not exist: --config names a TOML file") from None
                continue
            except (OSError, UnicodeDecodeError) as error:
                raise click.ClickException(f"{path} cannot be read: {error}") from error
            if not all(table in text for table in tables):
                continue
            found = _table(_parse(path, text), tables)
            if found is not None:
                self.path = path
                return found
        return {}

    def _refuse_unknown(self, ctx: click.Context, values: Mapping[str, Any]) -> None:
        unknown = []
        for key, value in values.items():
            if not isinstance(value, dict):
                if key not in SHARED:
                    unknown.append(key)
                continue
            known = {name.partition(".")[2] for name in settings_of(ctx, key)}
            unknown += [f"{key}.{name}" for name in value if name not in known] if known else [key]
        if unknown:
            raise click.ClickException(
                f"{self.path} has settings that do not exist: {', '.join(sorted(unknown))}; "
                "`fenceline config` lists those that do"
            )


class Setting(click.Option):
    """An option whose value may come from the environment and from the file as well."""

    def __init__(self, *declarations: Any, key: str, secret: bool = False, **options: Any) -> None:
        self.key = key
        self.secret = secret
        super().__init__(
            *declarations, **{"envvar": variable(key), "show_envvar": True, "show_default": True, **options}
        )

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        value, source = super().consume_value(ctx, opts)
        if source is ParameterSource.DEFAULT:
            found = SettingsFile.of(ctx).get(ctx, self.key)
            if found is not None:
                # A list is written with commas on the command line.
                return ",".join(map(str, found)) if isinstance(found, list) else found, ParameterSource.DEFAULT_MAP
        return value, source

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        return self._checked(ctx, value, ctx.get_parameter_source(self.name or ""))

    def effective(self, ctx: click.Context, given: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """The value now and where it came from; `given` is what the command line says."""
        value, source = self.consume_value(ctx, given)
        if source is ParameterSource.DEFAULT:
            # Without a default, newer clicks have a mark of their own for "nothing", which this spells None.
            return self.to_info_dict()["default"], source
        return self._checked(ctx, value, source), source

    def _checked(self, ctx: click.Context, value: Any, source: ParameterSource | None) -> Any:
        try:
            return super().process_value(ctx, value)
        except click.BadParameter as error:
            if source is ParameterSource.COMMANDLINE:
                raise
            raise click.ClickException(f"{origin(self, ctx, source)}: {error.message}") from error


def variable(key: str) -> str:
    """The environment variable of a setting."""
    return "FENCELINE_" + key.upper().replace(".", "_").replace("-", "_")


def origin(setting: Setting, ctx: click.Context, source: ParameterSource | None) -> str:
    """Where a value came from, for people."""
    match source:
        case ParameterSource.COMMANDLINE:
            return setting.opts[0]
        case ParameterSource.ENVIRONMENT:
            return variable(setting.key)
        case ParameterSource.DEFAULT_MAP:
            return f"{SettingsFile.of(ctx).path}: {setting.key}"
        case _:
            return "default"


def setting_option(*declarations: str, key: str, **options: Any) -> Callable[[F], F]:
    """`click.option` for a setting."""
    return click.option(*declarations, key=key, cls=Setting, **options)


def settings_of(ctx: click.Context, command_name: str) -> dict[str, Setting]:
    """The settings of one command, by key, without the shared ones."""
    root = ctx.find_root().command
    command = root.get_command(ctx, command_name) if isinstance(root, click.Group) else None
    if command is None:
        return {}
    found = [param for param in command.params if isinstance(param, Setting)]
    return {setting.key: setting for setting in found if "." in setting.key}


def _use_file(ctx: click.Context, _param: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.meta[_META] = SettingsFile(value)


#: Eager: the file must be known before the first setting is read.
config_option = click.option(
    "--config",
    envvar="FENCELINE_CONFIG",
    type=click.Path(path_type=Path),
    help=f"TOML file with settings; else ./{FILE_NAME}, else [tool.fenceline] in ./pyproject.toml.",
    is_eager=True,
    expose_value=False,
    callback=_use_file,
)

#: Settings that every command that talks to a queue has.
SHARED = ("dsn", "url", "token", "token_file")


def _parse(path: Path, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise click.ClickException(f"{path} is not TOML: {error}") from error


def _table(values: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    for name in path:
        inner = values.get(name)
        if not isinstance(inner, dict):
            return None
        values = inner
    return values
