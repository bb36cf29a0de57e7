"""A settings file that lies in a folder does not choose where a token goes that does not stand in it."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fenceline.cli import main

TOKEN = "fl_of_the_environment"  # noqa: S105 - that nobody may get
ELSEWHERE = "http://127.0.0.1:9"  # nobody listens there


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*command: str, **environment: str | None) -> Result:
    cleared = {"FENCELINE_DSN": None, "FENCELINE_URL": None, "FENCELINE_TOKEN": None, "FENCELINE_TOKEN_FILE": None}
    return CliRunner().invoke(main, command, env={**cleared, **environment})


def is_sent(result: Result) -> bool:
    """Whether it tried to reach the server."""
    assert result.exit_code != 0
    if "is not sent there" in result.output:
        return False
    assert "127.0.0.1:9" in result.output, result.output
    return True


@pytest.mark.parametrize("name", ["fenceline.toml", "pyproject.toml"])
@pytest.mark.parametrize("command", [("jobs", "list"), ("runner", "app:app")], ids=str)
def test_a_token_of_the_environment_is_not_sent_where_a_folder_says(
    folder: Path, name: str, command: tuple[str, ...]
) -> None:
    table = "[tool.fenceline]\n" if name == "pyproject.toml" else ""
    (folder / name).write_text(f'{table}url = "{ELSEWHERE}"\n')
    (folder / "token").write_text(TOKEN)
    assert not is_sent(run(*command, FENCELINE_TOKEN=TOKEN))
    assert not is_sent(run(*command, "--token", TOKEN))
    assert not is_sent(run(*command, FENCELINE_TOKEN_FILE=str(folder / "token")))
    assert not is_sent(run(*command, "--token-file", "token"))


def test_it_is_when_somebody_says_so(folder: Path) -> None:
    (folder / "fenceline.toml").write_text(f'url = "{ELSEWHERE}"\n')
    command = ("jobs", "list")
    assert is_sent(run(*command, "--url", ELSEWHERE, FENCELINE_TOKEN=TOKEN))
    assert is_sent(run(*command, FENCELINE_URL=ELSEWHERE, FENCELINE_TOKEN=TOKEN))
    assert is_sent(run("--config", "fenceline.toml", *command, FENCELINE_TOKEN=TOKEN))
    assert is_sent(run(*command))  # without a token there is nothing to lose
    (folder / "fenceline.toml").write_text(f'url = "{ELSEWHERE}"\ntoken = "fl_of_the_folder"\n')
    assert is_sent(run(*command))
    assert not is_sent(run(*command, FENCELINE_TOKEN=TOKEN))


def test_a_token_file(folder: Path) -> None:
    (folder / "token").write_text(f"{TOKEN}\n")
    command = ("jobs", "list", "--url", ELSEWHERE)
    assert is_sent(run(*command, "--token-file", "token"))
    assert "both --token and --token-file" in run(*command, "--token", "a", "--token-file", "token").output
    assert is_sent(run(*command, "--token-file", "token", FENCELINE_TOKEN="weaker"))  # noqa: S106 - no secret
    assert "cannot be read" in run(*command, "--token-file", "nowhere").output
    (folder / "token").write_text("\n")
    assert "is empty" in run(*command, "--token-file", "token").output
