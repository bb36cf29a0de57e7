"""Settings: options that can also come from the environment or from a TOML file.

A flag wins over the environment (`FENCELINE_…`), that over the file, and the file over the default. The file is the one
that `--config` (or `FENCELINE_CONFIG`) names, else `fenceline.toml`, else the table `[tool.fenceline]` of
`pyproject.toml`, in the current folder. The setting `worker.processes` is the flag `--processes` of `fenceline worker`,
the variable `FENCELINE_WORKER_PROCESSES`, and `processes` in the table `[worker]`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

F = TypeVar("F", bound=Callable[..., Any])

_META = "fenceline.settings_file"
FILE_NAME = "fenceline.toml"
#: Read by the client and the database, not by a flag of the command line.
PLAIN_VARIABLES = {
    "home": ("FENCELINE_HOME", ".fenceline"),
    "lanes": ("FENCELINE_LANES", None),
    "delivery": ("FENCELINE_DELIVERY", "postgres"),
    "redis_url": ("FENCELINE_REDIS_URL", None),
    "arq_queue": ("FENCELINE_ARQ_QUEUE", "fenceline:{lane}"),
}


class SettingsFile:
    """The TOML file that applies, if there is one; read when the first setting is looked up."""

    def __init__(self, given: Path | None = None) -> None:
        self._given = given
        self._values: dict[str, Any] | None = None
        self.path: Path | None = None

    @property
    def is_found(self) -> bool:
        """Whether it was not named, but found in the current folder."""
        return self.path is not None and self._given is None

    @classmethod
    def of(cls, ctx: click.Context) -> "SettingsFile":
        """The one of this run of the program."""
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
        if plain := sorted(set(unknown) & PLAIN_VARIABLES.keys()):
            variables = ", ".join(PLAIN_VARIABLES[key][0] for key in plain)
            raise click.ClickException(
                f"{self.path} has settings that only the environment can have: {', '.join(plain)}; set {variables}"
            )
        if unknown:
            raise click.ClickException(
                f"{self.path} has settings that do not exist: {', '.join(sorted(unknown))}; "
                "`fenceline config` lists those that do"
            )


class Setting(click.Option):
    """An option that has a key in the file, and so a variable in the environment."""

    def __init__(self, declarations: Sequence[str], *, key: str, secret: bool = False, **options: Any) -> None:
        self.key = key
        self.secret = secret
        super().__init__(declarations, envvar=variable(key), show_envvar=True, show_default=True, **options)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        value, source = super().consume_value(ctx, opts)
        if source is ParameterSource.DEFAULT:
            found = SettingsFile.of(ctx).get(ctx, self.key)
            if found is not None:
                # On the command line, a list is written with commas.
                return ",".join(map(str, found)) if isinstance(found, list) else found, ParameterSource.DEFAULT_MAP
        return value, source

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        return self._checked(ctx, value, ctx.get_parameter_source(self.name or ""))

    def effective(self, ctx: click.Context) -> tuple[Any, ParameterSource]:
        """The value that its command would get without the flag, and where it comes from."""
        value, source = self.consume_value(ctx, {})
        if source is ParameterSource.DEFAULT:
            # Newer versions of click mark a missing default with an object of their own; here it becomes None.
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
    """Where a value came from, as people would write it."""
    match source:
        case ParameterSource.COMMANDLINE:
            return setting.opts[0]
        case ParameterSource.ENVIRONMENT:
            return variable(setting.key)
        case ParameterSource.DEFAULT_MAP:
            return f"{SettingsFile.of(ctx).path}: {setting.key}"
        case _:
            return "default"


def setting_option(key: str, **options: Any) -> Callable[[F], F]:
    """`click.option` for a setting: `worker.log_level` is the flag `--log-level`."""
    return click.option(f"--{key.rpartition('.')[2].replace('_', '-')}", key=key, cls=Setting, **options)


def settings_of(ctx: click.Context, command_name: str) -> dict[str, Setting]:
    """The settings of one command by key, without the shared ones."""
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
