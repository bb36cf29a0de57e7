"""Settings: flags, environment, TOML, defaults; and `fenceline config`, which tells them apart."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import Program

from fenceline.server.server_settings import ServerSettings


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Without a database: `config` needs none."""
    return Program(tmp_path, None)


def rows(program: Program, *arguments: str, **environment: str) -> dict[str, dict[str, Any]]:
    return {
        row["key"]: row for row in program("config", "--json", *arguments, environment=environment).json["settings"]
    }


def test_defaults(program: Program) -> None:
    found = rows(program)
    assert found["dsn"]["value"] is None
    assert found["home"]["value"] == ".fenceline"
    assert (found["worker.processes"]["value"], found["worker.processes"]["source"]) == (1, "default")
    assert found["worker.processes"]["variable"] == "FENCELINE_WORKER_PROCESSES"
    assert {row["source"] for row in found.values()} == {"default"}


def test_a_server_in_an_application_has_the_limits_of_the_command(program: Program) -> None:
    found, settings = rows(program), ServerSettings()
    for name in ("requests_per_second", "refusals_per_second", "max_body_bytes", "statement_seconds"):
        assert found[f"server.{name}"]["value"] == getattr(settings, name)
    assert settings.refusals_per_second == 20.0


def test_a_setting_that_only_the_environment_can_have_is_refused_in_a_file(program: Program, tmp_path: Path) -> None:
    (tmp_path / "fenceline.toml").write_text('delivery = "arq"\nredis_url = "redis://localhost"\n')
    said = program("config").error
    assert "only the environment can have: delivery, redis_url" in said
    assert "set FENCELINE_DELIVERY, FENCELINE_REDIS_URL" in said


def test_the_password_of_a_redis_is_hidden(program: Program) -> None:
    found = rows(program, FENCELINE_REDIS_URL="redis://ann:hush@example/1", FENCELINE_DELIVERY="arq")
    assert found["redis_url"]["value"] == "redis://ann:••••@example/1"
    assert (found["delivery"]["value"], found["delivery"]["source"]) == ("arq", "FENCELINE_DELIVERY")


def test_a_flag_before_the_environment_before_the_file(program: Program) -> None:
    (program.folder / "fenceline.toml").write_text(
        'dsn = "postgresql:///file"\nurl = "http://file"\n[worker]\nprocesses = 2\nthreads = 3\nlanes = ["a", "b"]\n'
    )
    found = rows(
        program,
        "--dsn",
        "postgresql:///flag",
        FENCELINE_DSN="postgresql:///environment",
        FENCELINE_URL="http://environment",
        FENCELINE_WORKER_PROCESSES="5",
    )
    seen = {key: (row["value"], row["source"]) for key, row in found.items()}
    assert seen["dsn"] == ("postgresql:///flag", "--dsn")
    assert seen["url"] == ("http://environment", "FENCELINE_URL")
    assert seen["worker.processes"] == (5, "FENCELINE_WORKER_PROCESSES")
    assert seen["worker.threads"] == (3, "fenceline.toml: worker.threads")
    assert seen["worker.lanes"] == ("a,b", "fenceline.toml: worker.lanes")


def test_the_file_may_be_pyproject_or_any(program: Program) -> None:
    (program.folder / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.fenceline.worker]\nprocesses = 7\n')
    assert rows(program)["worker.processes"]["value"] == 7
    (program.folder / "other.toml").write_text("[worker]\nprocesses = 8\n")
    for how in (("--config", "other.toml"), ()):
        environment = {} if how else {"FENCELINE_CONFIG": "other.toml"}
        assert rows(program, *how, **environment)["worker.processes"]["value"] == 8
    assert program("--config", "other.toml", "config", "--json").json["file"] == str(program.folder / "other.toml")
    (program.folder / "fenceline.toml").write_text("[worker]\nprocesses = 9\n")
    assert rows(program)["worker.processes"]["value"] == 9


def test_secrets_are_hidden(program: Program) -> None:
    dsn = "postgresql://me:geheim@host:5433/db?sslmode=require&sslpassword=geheim"
    found = rows(program, FENCELINE_DSN=dsn, FENCELINE_TOKEN="geheim")  # noqa: S106 - what is looked for
    assert found["dsn"]["value"] == "postgresql://me:••••@host:5433/db?sslmode=require&sslpassword=••••"
    assert found["token"]["value"] == "••••"
    for spelling in ("host=h password=geheim", "postgresql://u:ge%40h:ei@m@h/d", "postgresql:///d?password=geheim"):
        shown = program("config", environment={"FENCELINE_DSN": spelling, "FENCELINE_TOKEN": "geheim"})
        assert shown.code == 0
        assert "ge" not in shown.out.partition("url")[0].replace("postgresql", ""), shown.out


@pytest.mark.parametrize(
    "text, says",
    [
        (
            "procesess = 3\n[worker]\nthreds = 3\n[wroker]\nx = 1\n[sql]\ny = 2",
            "exist: procesess, sql, worker.threds, wroker;",
        ),
        ("[worker\n", "fenceline.toml is not TOML"),
        ('[worker]\nprocesses = "many"', "fenceline.toml: worker.processes: 'many' is not a valid integer"),
    ],
)
def test_a_file_that_is_wrong(program: Program, text: str, says: str) -> None:
    (program.folder / "fenceline.toml").write_text(text)
    assert says in program("config").error
    # So says every command that reads a setting, and nothing was done.
    if "integer" not in says:
        assert says in program("worker", "nowhere:app").error


def test_a_file_that_is_not_there(program: Program) -> None:
    assert "missing.toml does not exist" in program("--config", "missing.toml", "config").error


def test_a_variable_that_is_wrong(program: Program) -> None:
    error = program("worker", "nowhere:app", environment={"FENCELINE_WORKER_GRACE": "soon"}).error
    assert error.startswith("FENCELINE_WORKER_GRACE: ")


def test_commands_use_the_file(fenceline: Program) -> None:
    dsn = fenceline.environment.pop("FENCELINE_DSN")
    (fenceline.folder / "fenceline.toml").write_text(f'dsn = "{dsn}"\n')
    assert len(fenceline("lanes", "list", "--json").json["items"]) == 4
    assert "up to date" in fenceline("migrate").out or fenceline("migrate").code == 0


def test_the_worker_uses_the_file(fenceline: Program) -> None:
    dsn = fenceline.environment.pop("FENCELINE_DSN")
    (fenceline.folder / "app.py").write_text(
        "from fenceline import Fenceline\napp = Fenceline()\n@app.job()\ndef nothing() -> None: ...\n"
    )
    (fenceline.folder / "fenceline.toml").write_text(f'dsn = "{dsn}"\n[worker]\ngrace = -1\n')
    ran = fenceline("worker", "app", "--once")
    assert ran.code == 2
    assert "grace -1.0 is out of range: use 0 to" in ran.err
    for name, value in [("grace", "nan"), ("grace", "inf"), ("lease", "nan"), ("lease", "1e300"), ("lease", "0")]:
        ran = fenceline("worker", "app", "--once", "--grace", "0", f"--{name}", value)
        assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
        assert f"{name} {float(value)} is out of range: use" in ran.err
    assert "999 is not in the range" in fenceline("worker", "app", "--once", "--empty-exit", "999").err
    assert fenceline("worker", "app", "--once", "--grace", "0", "--empty-exit", "9").code == 9
