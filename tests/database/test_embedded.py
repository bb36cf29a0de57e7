"""The embedded PostgreSQL, with real servers and real processes.

Every test has a folder of its own. The other processes are Python programs that join the server, report, and
leave when their standard input closes.
"""

import importlib.util
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import psutil
import psycopg
import pytest
from tests.support.patience import eventually_blocking, seconds_left

from fenceline.database.dsn import Source
from fenceline.database.embedded import EmbeddedPostgres
from fenceline.errors import EmbeddedError

USER_PROGRAM = textwrap.dedent("""
    import pathlib, sys
    from fenceline.database.embedded import EmbeddedPostgres
    print(EmbeddedPostgres(pathlib.Path(sys.argv[1])).start(), flush=True)
    sys.stdin.read()
""")


@contextmanager
def temporary_folder() -> Iterator[Path]:
    # Not in pytest's own folder: too deep for a socket beside the data, and closed to other accounts.
    path = Path(tempfile.mkdtemp(prefix="fenceline-embedded-", dir="/tmp"))
    try:
        yield path / ".fenceline"
    finally:
        for pid_file in path.rglob("postmaster.pid"):
            kill(int(pid_file.read_text().split()[0]))
        shutil.rmtree(path)


@pytest.fixture
def new_folder() -> Iterator[Path]:
    """A folder that no server has used yet."""
    with temporary_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def used_folder() -> Iterator[Path]:
    with temporary_folder() as folder:
        with EmbeddedPostgres(folder):
            pass
        yield folder


@pytest.fixture
def folder(new_folder: Path, used_folder: Path) -> Path:
    """A folder whose server is stopped; copied, which is quicker than made anew."""
    subprocess.run(["cp", "-a", used_folder, new_folder], check=True)
    return new_folder


class UserProcess:
    """Another process that uses the embedded server of a folder."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER_PROGRAM, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def dsn(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds_left())
        assert ready, "the process did not start the server"
        return self.process.stdout.readline().strip()

    def begin_to_leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None

    def leave(self) -> None:
        _, errors = self.process.communicate(timeout=seconds_left())
        assert (self.process.returncode, errors) == (0, "")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def server_pid(folder: Path) -> int | None:
    pid_file = folder / "data" / "postmaster.pid"
    return int(pid_file.read_text().split()[0]) if pid_file.exists() else None


def is_alive(pid: int | None) -> bool:
    try:
        # What is dead but not yet reaped by the system counts as dead.
        return pid is not None and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def ends(pid: int | None) -> bool:
    """A stopped server has let go of its files, and its process ends a moment later."""
    eventually_blocking(lambda: not is_alive(pid), f"the end of process {pid}")
    return True


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    assert ends(pid)


def fetch(dsn: str, query: str) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]


def execute(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_start_from_nothing_gives_a_durable_server_without_a_port(new_folder: Path) -> None:
    with EmbeddedPostgres(new_folder) as dsn:
        assert str(fetch(dsn, "show server_version")).startswith("18.")
        assert fetch(dsn, "show fsync") == "on"
        assert fetch(dsn, "show synchronous_commit") == "on"
        assert fetch(dsn, "show listen_addresses") == ""
        assert fetch(dsn, "show server_encoding") == "UTF8"
        assert (new_folder / ".gitignore").read_text() == "*\n"
        pid = server_pid(new_folder)
        assert is_alive(pid)
    assert ends(pid)


async def test_asyncpg_accepts_the_dsn(folder: Path) -> None:
    with EmbeddedPostgres(folder) as dsn:
        connection = await asyncpg.connect(dsn)
        assert await connection.fetchval("select 1") == 1
        await connection.close()


def test_folder_is_named_by_the_environment_or_lies_in_the_current_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FENCELINE_HOME", str(folder))
    assert EmbeddedPostgres().folder == folder
    monkeypatch.delenv("FENCELINE_HOME")
    assert EmbeddedPostgres().folder == tmp_path / ".fenceline"


def test_caller_environment_does_not_reach_the_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "6543")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with EmbeddedPostgres(folder) as dsn:
        assert fetch(dsn, "show port") == "5432"
        monkeypatch.delenv("PGCLIENTENCODING")
        assert fetch(dsn, "show client_encoding") == "UTF8"


def test_data_survives_a_restart(folder: Path) -> None:
    with EmbeddedPostgres(folder) as dsn:
        execute(dsn, "create table kept as select 42 as answer")
    with EmbeddedPostgres(folder) as dsn:
        assert fetch(dsn, "select answer from kept") == 42


def test_start_and_stop_are_idempotent(folder: Path) -> None:
    embedded = EmbeddedPostgres(folder)
    embedded.stop()
    assert embedded.start() == embedded.start()
    pid = server_pid(folder)
    embedded.stop()
    embedded.stop()
    assert ends(pid)


def test_two_instances_in_one_process_count_as_two_users(folder: Path) -> None:
    with EmbeddedPostgres(folder) as dsn:
        with EmbeddedPostgres(folder) as other_dsn:
            assert other_dsn == dsn
        assert fetch(dsn, "select 1") == 1


def test_processes_share_one_server_and_the_last_one_out_stops_it(folder: Path) -> None:
    first, second = UserProcess(folder), UserProcess(folder)
    assert first.dsn() == (dsn := second.dsn())
    pid = server_pid(folder)
    first.leave()
    assert fetch(dsn, "select 1") == 1
    second.leave()
    assert ends(pid)


def test_many_processes_starting_at_once_get_one_server(new_folder: Path) -> None:
    users = [UserProcess(new_folder) for _ in range(10)]
    servers = {fetch(user.dsn(), "select pg_postmaster_start_time()") for user in users}
    assert len(servers) == 1
    pid = server_pid(new_folder)
    for user in users:
        user.begin_to_leave()
    for user in users:
        user.leave()
    assert ends(pid)


def test_server_left_by_killed_users_is_used_again_and_then_stopped(folder: Path) -> None:
    users = [UserProcess(folder) for _ in range(3)]
    dsn, *_ = [user.dsn() for user in users]
    execute(dsn, "create table kept as select 42 as answer")
    pid = server_pid(folder)
    for user in users:
        user.kill()
    with EmbeddedPostgres(folder) as dsn:
        assert server_pid(folder) == pid
        assert fetch(dsn, "select answer from kept") == 42
    assert ends(pid)


def test_a_killed_user_does_not_make_another_stop_the_server(folder: Path) -> None:
    killed, leaving, staying = (UserProcess(folder) for _ in range(3))
    dsn, *_ = [user.dsn() for user in (killed, leaving, staying)]
    killed.kill()
    leaving.leave()
    assert fetch(dsn, "select 1") == 1
    staying.leave()
    assert server_pid(folder) is None


def test_killed_server_and_users_recover_with_all_commits(folder: Path) -> None:
    user = UserProcess(folder)
    execute(user.dsn(), "create table kept as select 42 as answer")
    killed_pid = server_pid(folder)
    user.kill()
    assert killed_pid is not None
    kill(killed_pid)
    with EmbeddedPostgres(folder) as dsn:
        assert server_pid(folder) != killed_pid
        assert fetch(dsn, "select answer from kept") == 42


def test_start_again_revives_a_server_that_died_under_its_user(folder: Path) -> None:
    with EmbeddedPostgres(folder) as dsn:
        pid = server_pid(folder)
        assert pid is not None
        kill(pid)
        with EmbeddedPostgres(folder):
            assert fetch(dsn, "select 1") == 1


def test_a_socket_that_nobody_answers_at_is_not_taken_for_the_server(folder: Path) -> None:
    """As what a killed server was about to start leaves behind, for a moment."""
    with EmbeddedPostgres(folder) as dsn:
        pid = server_pid(folder)
        assert pid is not None
        kill(pid)
        path = folder / "data" / ".s.PGSQL.5432"
        path.unlink()
        with socket.socket(socket.AF_UNIX) as orphan:
            orphan.bind(str(path))
            orphan.listen()
            with EmbeddedPostgres(folder):
                assert fetch(dsn, "select 1") == 1


def test_reused_process_id_in_the_pid_file_is_not_taken_for_the_server(folder: Path) -> None:
    with EmbeddedPostgres(folder):
        pid_file = folder / "data" / "postmaster.pid"
        content, status = pid_file.read_text().splitlines(), pid_file.stat()
    # PostgreSQL itself would refuse to start beside a live process of its own account.
    stranger = subprocess.Popen(["sleep", "3600"], user=status.st_uid)
    pid_file.write_text("\n".join([str(stranger.pid), *content[1:]]))
    os.chown(pid_file, status.st_uid, status.st_gid)
    try:
        with EmbeddedPostgres(folder) as dsn:
            assert fetch(dsn, "select 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_interrupted_creation_leaves_no_half_cluster(new_folder: Path) -> None:
    half = new_folder / "initdb-interrupted"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(new_folder) as dsn:
        assert fetch(dsn, "select 1") == 1
    assert not half.exists()


def test_forked_child_neither_stops_nor_keeps_the_server(folder: Path) -> None:
    program = textwrap.dedent("""
        import os, pathlib, sys, time
        from fenceline.database.embedded import EmbeddedPostgres
        embedded = EmbeddedPostgres(pathlib.Path(sys.argv[1]))
        embedded.start()
        if os.fork() == 0:
            sys.exit()              # runs the inherited exit handlers
        os.wait()
        print(embedded._cluster._find_postmaster() is not None, flush=True)
        child = os.fork()
        if child == 0:
            os.close(1)
            os.close(2)
            time.sleep(3600)        # a child that outlives its parent is no user
            os._exit(0)
        print(child, flush=True)
    """)
    answer = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True, timeout=seconds_left()
    )
    running, child = answer.stdout.split()
    try:
        assert running == "True"
        assert is_alive(int(child))
        assert server_pid(folder) is None
    finally:
        kill(int(child))


def test_forked_child_becomes_a_user_by_starting(folder: Path) -> None:
    program = textwrap.dedent("""
        import os, pathlib, sys
        from fenceline.database.embedded import EmbeddedPostgres
        embedded = EmbeddedPostgres(pathlib.Path(sys.argv[1]))
        embedded.start()
        joined_read, joined_write = os.pipe()
        left_read, left_write = os.pipe()
        if os.fork() == 0:
            os.close(left_write)
            embedded.start()
            os.write(joined_write, b"x")
            os.read(left_read, 1)   # ends when the parent has left
            print(embedded._cluster._find_postmaster() is not None, flush=True)
            sys.exit()
        os.close(left_read)
        os.read(joined_read, 1)
        embedded.stop()
        os.close(left_write)
        os.wait()
    """)
    answer = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True, timeout=seconds_left()
    )
    assert answer.stdout == "True\n"
    assert server_pid(folder) is None


@pytest.mark.parametrize("name", ["d" * 120, "spaces, commas & 'quotes'"])
def test_folders_that_a_socket_cannot_live_in_work(new_folder: Path, name: str) -> None:
    folder = new_folder.parent / name / ".fenceline"
    with EmbeddedPostgres(folder) as dsn, EmbeddedPostgres(folder) as joined_dsn:
        assert joined_dsn == dsn
        socket_folder = Path(str(fetch(dsn, "show unix_socket_directories")))
        assert socket_folder.stat().st_mode & 0o077 == 0
    assert not socket_folder.exists()


def test_data_of_another_major_version_is_refused(folder: Path) -> None:
    (folder / "data" / "PG_VERSION").write_text("16\n")
    with pytest.raises(EmbeddedError, match=r"PostgreSQL 16, but .* PostgreSQL 18") as caught:
        EmbeddedPostgres(folder).start()
    assert str(folder / "data") in str(caught.value)


def test_missing_wheel_is_named_with_its_cure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EmbeddedError, match=r'pip install "fenceline\[embedded\]"'):
        EmbeddedPostgres(folder).start()


def test_server_that_cannot_start_says_why(folder: Path) -> None:
    with (folder / "data" / "postgresql.conf").open("a") as configuration:
        configuration.write("shared_buffers = nonsense\n")
    with pytest.raises(EmbeddedError, match=r"(?s)did not start.*shared_buffers"):
        EmbeddedPostgres(folder).start()
    # The failed start left no user behind: a repaired folder works and is stopped by its last user.
    with (folder / "data" / "postgresql.conf").open("a") as configuration:
        configuration.write("shared_buffers = 16MB\n")
    with EmbeddedPostgres(folder) as dsn:
        assert fetch(dsn, "show shared_buffers") == "16MB"
    assert server_pid(folder) is None


def test_deleted_folder_does_not_upset_leaving(folder: Path) -> None:
    embedded = EmbeddedPostgres(folder)
    embedded.start()
    pid = server_pid(folder)
    assert pid is not None
    shutil.rmtree(folder)
    embedded.stop()
    kill(pid)


def test_a_source_is_described_by_its_folder_or_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FENCELINE_DSN", raising=False)
    assert Source(home=tmp_path).describe() == f"embedded database in {tmp_path}"
    given = Source("postgresql://ann:s3cret@db:5432/app?sslmode=require&password=s3cret").describe()
    assert given == "database postgresql://ann:••••@db:5432/app?sslmode=require&password=••••"
    assert Source("host=db password=s3cret").describe() == "database ••••"
