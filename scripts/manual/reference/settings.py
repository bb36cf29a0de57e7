"""Every setting of the programs, and the other variables of the environment."""

from scripts.manual.reference.command_line import commands
from scripts.manual.reference.markdown import code, table

from fenceline.cli.settings import Setting, variable

#: Variables that are no settings of a command: who reads them, and what for.
VARIABLES = {
    "FENCELINE_CONFIG": "The TOML file with settings. Else `./fenceline.toml`, else `[tool.fenceline]` in `./pyproject.toml`.",
    "FENCELINE_HOME": "The folder of the embedded PostgreSQL, and of the first token. Else `./.fenceline`.",
    "FENCELINE_KEYS": "Keys for encryption at rest, separated by commas, the newest first. See [Encryption](../guides/encryption.md).",
    "FENCELINE_DELIVERY": "How jobs reach workers where the lane and `Fenceline(delivery=…)` say nothing: `postgres`, `arq`, `inline`.",
    "FENCELINE_REDIS_URL": "The Redis of the delivery `arq`.",
    "FENCELINE_ARQ_QUEUE": "For an Arq worker of your own: the queue, and so the lane, that it listens to. See [Deliveries](../guides/deliveries.md).",
    "FENCELINE_LANES": "The lanes that `make up` and `fenceline up` create at the start, as `name:slots`, separated by commas.",
    "FENCELINE_PUBLIC_URL": "The address of the server as outsiders see it, for `ctx.callback_url`.",
    "FENCELINE_IDENTITY_<NAME>__<KEY>": "A credential of an identity, for `EnvironmentCredentials`. See [Identity](../guides/workflows.md#identity).",
    "FENCELINE_TEST_DSN": "The server that tests make their databases on. Else an embedded one. See [Testing](../guides/testing.md).",
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

Every setting can be a flag, a variable or a line of a TOML file; from the strongest: flag, variable, file, default. `worker.processes` is `processes` in
the table `[worker]`. `fenceline config` prints all of them with their values and where each came from. How the file is found is in
[The command line](../guides/cli.md#settings).

What is set in the database and not here: lanes ([options](options.md#a-lane)), retention (`fenceline retention`), limits of tenants (`fenceline limits`),
who may approve (`fenceline approval`), and schedules.

{table(["setting", "flag", "variable", "default", "what"], rows)}
## Further variables

{table(["variable", "what"], [[code(name), text] for name, text in VARIABLES.items()])}
"""
