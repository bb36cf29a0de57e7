"""`fenceline --help`, and what holds for all commands."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.cli.program import FENCELINE, Program

from fenceline.cli import COMMANDS, SECTIONS, main

READING = (
    "jobs list",
    "jobs show",
    "jobs logs",
    "lanes list",
    "workers",
    "config",
    "depth",
    "doctor",
    "schedules list",
    "token list",
    "bench",
    "retention",
)
# A way to the queue of their own, or none: they run the queue, or look at no queue at all.
ELSEWHERE = {"up", "demo", "migrate", "worker", "server", "runner", "bench", "sql", "config"}
# What takes long to load, and has no part in saying what commands there are.
HEAVY = {"asyncio", "asyncpg", "pydantic", "rich", "textual", "httpx", "tomllib", "fastapi", "uvicorn"}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command, also those of groups, by its full name."""
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", found) for inner, found in command.commands.items())
        else:
            yield name, command


def test_help_lists_every_command_in_its_section(tmp_path: Path) -> None:
    shown = Program(tmp_path, None)("--help").out
    place = 0
    for section, entries in SECTIONS.items():
        place = shown.index(f"{section}:", place)
        for name, (_, line) in entries.items():
            place = shown.index(f"  {name} ", place)
            assert line.split()[0] in shown[place:].splitlines()[0]


def test_the_line_in_help_is_the_commands_own() -> None:
    context = click.Context(main)
    for name, (_, line) in COMMANDS.items():
        command = main.get_command(context, name)
        assert command is not None
        assert (command.help or "").partition("\n")[0] == line, name


def test_every_command_says_what_it_does_and_what_its_options_mean() -> None:
    for name, command in commands():
        assert command.help, name
        for param in command.params:
            if isinstance(param, click.Option) and param.name != "log_format":
                assert param.help, f"{name} {param.opts}"


def test_reading_commands_have_json_and_all_reach_a_queue_both_ways() -> None:
    found = dict(commands())
    for name in READING:
        assert "as_json" in {param.name for param in found[name].params}, name
    for name, command in found.items():
        given = {param.name for param in command.params if not getattr(param, "hidden", False)}
        if name.partition(" ")[0] not in ELSEWHERE:
            assert {"dsn", "url", "token"} <= given, name


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    """A count stands for time here: machines are more or less busy."""
    code = (
        "import sys, json, contextlib, io\n"
        "from fenceline.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(['--help'])\n"
        "json.dump(sorted(sys.modules), sys.stdout)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    of_commands = {name for name in loaded if name.startswith("fenceline.cli.")}
    assert of_commands == {f"fenceline.cli.{name}" for name in ("command_group", "hangup", "settings")}
    assert len(loaded) < 200


@pytest.mark.parametrize("words, expected", [("jobs ", "reprioritise"), ("jobs list --status ", "awaiting_approval")])
def test_shells_complete(tmp_path: Path, words: str, expected: str) -> None:
    program = Program(tmp_path, None)
    typed = f"fenceline {words}"
    answer = program(
        environment={
            "_FENCELINE_COMPLETE": "bash_complete",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split())),
        }
    )
    assert expected in answer.out


def test_the_completion_script_is_printed(tmp_path: Path) -> None:
    done = Program(tmp_path, None)(environment={"_FENCELINE_COMPLETE": "bash_source"})
    assert "complete" in done.out
    assert Path(FENCELINE).name in done.out


def test_what_is_about_a_database_says_so_when_it_is_sent_to_a_server(tmp_path: Path) -> None:
    program = Program(tmp_path, None)
    for command in (["up"], ["demo"], ["migrate"], ["worker", "tasks:app"], ["server"], ["bench"]):
        for option in ("--url", "--token"):
            error = program(*command, option, "http://localhost:1").error
            assert error.startswith(f"{option}: `fenceline {command[0]}` works on a database only: give --dsn"), error
    assert "over HTTP only: give --url and --token" in program("runner", "tasks:app", "--dsn", "postgresql:///x").error


@pytest.mark.parametrize(
    "words, says",
    [
        (["jbos"], "Error: No such command 'jbos'. Did you mean 'fenceline jobs'? (see `fenceline --help`)"),
        (["job", "list"], "Error: No such command 'job'. Did you mean 'fenceline jobs'? (see `fenceline --help`)"),
        (
            ["jobs", "lst"],
            "Error: No such command 'lst'. Did you mean 'fenceline jobs list'? (see `",
        ),
        (["qqqq"], "Error: No such command 'qqqq'. (see `fenceline --help`)"),
        (["--nope"], "Error: No such option '--nope'. (see `fenceline --help`)"),
        (["jobs", "list", "--limit", "0"], "Error: Invalid value for '--limit': 0 is not in the range x>=1. (see `"),
        (["jobs", "list", "--created-after", "5x"], "Error: Invalid value for '--created-after': '5x' is not a time"),
        (["enqueue", "mail", "--args", "{"], "Error: Invalid value for '--args': this is not JSON"),
        (["enqueue"], "Error: Missing argument 'KIND'. (see `fenceline enqueue --help`)"),
    ],
)
def test_wrong_usage_is_one_line_too(tmp_path: Path, words: list[str], says: str) -> None:
    ran = Program(tmp_path, None)(*words)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1), ran
    assert ran.err.startswith(says)


def test_a_group_without_a_command_shows_its_commands(tmp_path: Path) -> None:
    ran = Program(tmp_path, None)("jobs")
    assert "reprioritise" in ran.out + ran.err


def test_python_runs_it_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fenceline", "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == Program(tmp_path, None)("--help").out
