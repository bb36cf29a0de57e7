"""Every setting of the programs, and the other variables of the environment."""

from scripts.manual.reference.command_line import commands
from scripts.manual.reference.markdown import code, table

from fenceline.cli.settings import Setting, variable

#: Variables that are no settings of a command: who reads them, and what for.
VARIABLES = {
    "FENCELINE_CONFIG": "The TOML file with settings. Default: `./fenceline.toml`, then `[tool.fenceline]` in `./pyproject.toml`.",
    "FENCELINE_HOME": "The folder of the embedded PostgreSQL, and of the first token. Default: `./.fenceline`.",
    "FENCELINE_KEYS": "Keys for encryption at rest, separated by commas, the newest first. See [Encryption](../guides/encryption.md).",
    "FENCELINE_DELIVERY": "How jobs reach workers, unless the lane or `Fenceline(delivery=…)` sets it: `postgres`, `arq`, `inline`.",
    "FENCELINE_REDIS_URL": "The address of the Redis server for the delivery `arq`, such as `redis://localhost:6379`.",
    "FENCELINE_ARQ_QUEUE": "The name of the queues in Redis, `fenceline:{lane}` by default. Without `{lane}` all lanes share one. See [Deliveries](../guides/deliveries.md).",
    "FENCELINE_LANES": 'Settings of lanes as JSON, such as `{"reports": {"slots": 1}}`. Read once, when the schema is installed.',
    "FENCELINE_PUBLIC_URL": "The address at which the server is reached from outside, for `ctx.callback_url`.",
    "FENCELINE_IDENTITY_<NAME>__<KEY>": "A credential of an identity, for `EnvironmentCredentials`. See [Identity](../guides/credentials.md#identity).",
    "FENCELINE_TEST_DSN": "The server on which tests create their databases. Default: an embedded one. See [Testing](../guides/testing.md).",
}


def settings() -> list[Setting]:
    """Of all commands, each once, the shared ones first."""
    found = {
        option.key: option for _, command in commands() for option in command.params if isinstance(option, Setting)
    }
    return sorted(found.values(), key=lambda setting: ("." in setting.key, setting.key))


def row(setting: Setting) -> list[str]:
    default = setting.to_info_dict()["default"]
    shown = "" if default in (None, (), False, "") else default
    names = ", ".join(code(name) for name in (*setting.opts, *setting.secondary_opts))
    return [code(setting.key), names, code(variable(setting.key)), code(shown), setting.help or ""]


def page() -> str:
    rows = [row(setting) for setting in settings()]
    return f"""# Settings

Every setting can be a flag, a variable or a line of a TOML file. A flag overrides a variable, a variable the file, and the file the default. `worker.processes` is `processes` in the
table `[worker]`. `fenceline config` prints all settings with their values and sources. [The command line](../guides/cli.md#settings) explains how the file is found.

These are set in the database instead: lanes ([options](options.md#a-lane)), retention (`fenceline retention`), limits of tenants (`fenceline limits`), approval
(`fenceline approval`), and schedules.

{table(["setting", "flag", "variable", "default", "what"], rows)}
## Further variables

{table(["variable", "what"], [[code(name), text] for name, text in VARIABLES.items()])}
"""
