"""What cannot be done is one line that says what to do, and an exit code."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from tests.cli.program import FENCELINE, Hands, Program

from fenceline.cli.exception_text import one_line


def test_a_mistyped_check_symbol(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue()
    wrong = job[:-1] + ("A" if job[-1] != "A" else "B")
    for command in (("show", wrong), ("logs", wrong), ("cancel", wrong), ("reprioritise", wrong, "3")):
        assert f"{wrong!r} is not a job id: the check symbols do not fit" in fenceline("jobs", *command).error
    assert hands.status(job) == "queued"


def test_one_mistyped_id_among_several_stops_all(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue()
    assert "'nonsense' is not a job id" in fenceline("jobs", "cancel", job, "nonsense", "--yes").error
    assert hands.status(job) == "queued"


def test_a_job_that_is_not_there(fenceline: Program) -> None:
    missing = "0003-G923-0VQV-SW0"
    for verb in ("show", "logs", "cancel", "retry", "approve", "reject"):
        assert f"job {missing} does not exist" in fenceline("jobs", verb, missing).error


def test_a_status_that_does_not_fit(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue()
    for verb in ("retry", "approve", "reject"):
        error = fenceline("jobs", verb, job).error
        assert job in error
        assert "queued" in error


@pytest.mark.parametrize("command", [("drain", "nowhere"), ("resume", "nowhere")])
def test_an_unknown_lane(fenceline: Program, command: tuple[str, ...]) -> None:
    error = fenceline("lanes", *command).error
    assert "lane 'nowhere' does not exist" in error
    assert "fenceline lanes list" in error


def test_a_setting_that_breaks_a_rule(fenceline: Program) -> None:
    assert "slots" in fenceline("lanes", "set", "default", "--slots", "-1").error
    assert "--slots 'many' is not a number" in fenceline("lanes", "set", "default", "--slots", "many").error


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("command", [("jobs", "list"), ("migrate",), ("lanes", "list"), ("workers",)])
def test_a_database_that_does_not_answer(tmp_path: Path, closed_port: int, command: tuple[str, ...]) -> None:
    program = Program(tmp_path, f"postgresql://nobody:geheim@127.0.0.1:{closed_port}/nothing")
    error = program(*command).error
    assert "check --dsn (or FENCELINE_DSN), and that PostgreSQL is running there" in error
    assert "geheim" not in error


@pytest.mark.parametrize("command", ["doctor", "migrate", "workers"])
def test_a_socket_that_is_not_there(tmp_path: Path, command: str) -> None:
    error = Program(tmp_path, f"postgresql://nobody@/nothing?host={tmp_path}")(command).error
    assert "check --dsn (or FENCELINE_DSN), and that PostgreSQL is running there" in error


def test_a_connection_that_is_lost_between_two_statements() -> None:
    """The driver has other words for it then, and `top` ended with a traceback."""
    farewell = asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")
    for error in (farewell, asyncpg.InterfaceError("connection is closed")):
        assert "check --dsn" in (one_line(error) or "")
    assert one_line(asyncpg.InternalClientError("no decoder for OID 42")) is None


def test_a_database_that_does_not_exist(fenceline: Program, database: str) -> None:
    elsewhere = urlunsplit(urlsplit(database)._replace(path="/nonexistent"))
    for command in (("jobs", "list"), ("migrate",)):
        error = fenceline(*command, "--dsn", elsewhere).error
        assert "nonexistent" in error
        assert "--dsn" in error


def test_a_dsn_that_is_none(fenceline: Program) -> None:
    for command in (("jobs", "list"), ("migrate",)):
        for dsn in (
            "nonsense",
            "postgresql://me@[::1/x",
            "postgresql://me:geheim@host:port/x",
            "postgresql://me:geheim/x@host/x",
        ):
            error = fenceline(*command, "--dsn", dsn).error
            assert "check --dsn" in error
            assert "geheim" not in error


def test_a_schema_that_is_missing_too_old_or_too_new(fenceline: Program, hands: Hands, empty_database: str) -> None:
    for command in (("jobs", "list"), ("up",), ("server", "--no-auth", "--port", "0")):
        assert "run `fenceline migrate`" in fenceline(*command, "--dsn", empty_database).error
    hands.connection.execute("update fenceline.migration set compatible_from = 999 where number = 1")
    error = fenceline("jobs", "list").error
    assert "999" in error
    assert "upgrade the fenceline package" in error
    hands.connection.execute("delete from fenceline.migration")
    assert "run `fenceline migrate`" in fenceline("jobs", "list").error


@pytest.fixture
def reader(server: str, hands: Hands, database: str) -> Iterator[str]:
    """The DSN of a role that may only read."""
    name = f"fenceline_test_reader_{uuid4().hex[:8]}"
    hands.connection.execute(f"create role {name} login password 'geheim' in role fenceline_reader")
    parts = urlsplit(database)
    host = parts.netloc.rpartition("@")[2]
    yield urlunsplit(parts._replace(netloc=f"{name}:geheim@{host}"))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"drop role {name}")


def test_a_role_that_may_not(fenceline: Program, hands: Hands, reader: str) -> None:
    hands.enqueue()
    assert len(fenceline("jobs", "list", "--json", "--dsn", reader).json["items"]) == 1
    error = fenceline("lanes", "drain", "default", "--dsn", reader).error
    assert "this database role may not do that" in error
    assert "fenceline_admin" in error
    assert hands.value("select enabled from fenceline.lane where name = 'default'")


def test_a_database_and_a_server_at_once(fenceline: Program) -> None:
    both = fenceline("jobs", "list", "--dsn", "postgresql:///x", "--url", "http://localhost:1")
    assert "use one of them" in both.error


def test_a_flag_is_stronger_than_the_environment(fenceline: Program, closed_port: int) -> None:
    """FENCELINE_DSN is set, --url is said: the server is asked, which is not there."""
    error = fenceline("jobs", "list", "--url", f"http://127.0.0.1:{closed_port}").error
    assert "check --url (or FENCELINE_URL), and that `fenceline server` is running there" in error


def test_something_that_is_no_fenceline_server(fenceline: Program, tmp_path: Path) -> None:
    for url in ("nonsense", "http://", "ftp://localhost/x"):
        assert "check --url" in fenceline("jobs", "list", "--url", url).error


def test_the_depth_of_a_lane_that_is_not_there(fenceline: Program) -> None:
    """An autoscaler with a mistyped lane would never start a worker."""
    assert "lane 'defualt' does not exist; `fenceline lanes list`" in fenceline("depth", "--lane", "defualt").error
    assert fenceline("depth", "--lane", "default").out == "0\n"


@pytest.mark.parametrize(
    "code, says",
    [
        ("raise RuntimeError('boom')", "tasks cannot be imported: RuntimeError: boom ("),
        ("raise SystemExit('set $HOST')", "tasks cannot be imported: SystemExit: set $HOST ("),
        ("import nowhere_at_all", "tasks cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all' ("),
        ("def (", "tasks cannot be imported: SyntaxError: invalid syntax (tasks.py, line 1)"),
        (
            "from fenceline import Fenceline\napp = Fenceline(delivery='pigeon')",
            "cannot be imported: delivery 'pigeon' is unknown: use postgres, arq or inline, or a backend's class (",
        ),
        ("from fenceline import Fenceline\napp = Fenceline(delivery='pigeon')", "tasks.py, line 2)"),
        ("", "tasks:app is missing: APP must name a Fenceline object"),
        ("app = 1", "tasks:app is int: APP must name a Fenceline object"),
    ],
)
def test_an_application_that_cannot_be_loaded(fenceline: Program, code: str, says: str) -> None:
    (fenceline.folder / "tasks.py").write_text(code)
    assert says in fenceline("worker", "tasks:app", "--once").error
    assert says in fenceline("server", "tasks:app").error


def test_a_standard_input_that_is_closed(fenceline: Program, hands: Hands) -> None:
    hands.enqueue()
    for command, says in (("enqueue mail --args -", "standard input is closed"), ("jobs cancel --all", "add --yes")):
        ran = subprocess.run(
            ["/bin/sh", "-c", f'"{FENCELINE}" {command} <&-'],
            cwd=fenceline.folder,
            env=fenceline.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode != 0
        assert says in ran.stderr
        assert len(ran.stderr.splitlines()) == 1, ran.stderr


def test_a_terminal_without_our_signs(fenceline: Program, hands: Hands) -> None:
    """Bars and accents are replaced by what there is; JSON loses nothing."""
    failed = hands.finished("work", labels={"name": "Zoë"})
    plain = {"PYTHONIOENCODING": "ascii"}
    assert "#1" in fenceline("jobs", "show", failed, environment=plain).out
    assert fenceline("jobs", "show", failed, "--json", environment=plain).json["labels"] == {"name": "Zoë"}
