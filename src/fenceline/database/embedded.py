"""The PostgreSQL of a folder, shared by every process that works there.

Who uses the server is known to the kernel alone, so that `kill -9` leaves nothing stale behind:

* `users.lock`: every user holds a shared flock for as long as it uses the server;
* `lifecycle.lock`: held exclusively while a user arrives or leaves, so that starting and stopping never
  overlap.

Whoever leaves tries, under `lifecycle.lock`, to make its flock on `users.lock` exclusive. That succeeds for
the last user only, and the last user stops the server. Lock order: `lifecycle.lock`, then `users.lock`.

When all users die without leaving (SIGKILL, or a signal they do not handle) the server stays up; the next
user finds it and, once it is the last one to leave, stops it.
"""

import atexit
import fcntl
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from fenceline.database.embedded_cluster import PORT, SUPERUSER, Cluster
from fenceline.errors import EmbeddedError

USERS_LOCK = "users.lock"
LIFECYCLE_LOCK = "lifecycle.lock"


def default_folder() -> Path:
    """`$FENCELINE_HOME`, else `.fenceline` in the current folder."""
    return Path(os.environ.get("FENCELINE_HOME") or ".fenceline")


class EmbeddedPostgres:
    """One process's use of the embedded PostgreSQL of a folder.

    The first user creates and starts the server, others join it, and the last one to `stop` or to exit stops
    it. The data is durable: fsync is on, and the folder may be used again at any time. Threads may share an
    instance. A forked child inherits neither the use nor the duty to stop; it calls `start` to become a user.

    Raises `EmbeddedError` when the wheel is missing, when the folder holds another major version or belongs
    to another user, and when the server does not start.

        with EmbeddedPostgres() as dsn:
            connection = await asyncpg.connect(dsn)
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or default_folder()).resolve()
        self._cluster = Cluster(self.folder / "data")
        self._held_locks: dict[str, int] = {}
        self._guard = threading.RLock()
        forget = weakref.WeakMethod(self._forget_in_forked_child)
        os.register_at_fork(after_in_child=lambda: (method := forget()) and method())

    def start(self) -> str:
        """Become a user of the server, starting it if need be, and return its DSN.

        Starting again is harmless, and restarts a server that has died in the meantime.
        """
        with self._guard:
            self._create_folder()
            with self._lifecycle():
                arriving = USERS_LOCK not in self._held_locks
                if arriving:
                    self._acquire(USERS_LOCK, fcntl.LOCK_SH)
                try:
                    socket_folder = self._cluster.ensure_running()
                except BaseException:
                    if arriving:
                        self._release(USERS_LOCK)
                    raise
            if arriving:
                atexit.register(self.stop)
        # The port is named because clients would otherwise take $PGPORT.
        return f"postgresql://{SUPERUSER}@/postgres?host={quote(str(socket_folder), safe='/')}&port={PORT}"

    def stop(self) -> None:
        """Leave; the last user stops the server. Harmless when not started."""
        with self._guard:
            if USERS_LOCK not in self._held_locks:
                return
            atexit.unregister(self.stop)
            try:
                # A server whose folder was deleted notices within a minute and ends by itself.
                if self.folder.exists():
                    with self._lifecycle():
                        if self._is_last_user():
                            self._cluster.stop()
                        self._release(USERS_LOCK)
            finally:
                self._release(USERS_LOCK)

    def __enter__(self) -> str:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def _create_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        ignore_file = self.folder / ".gitignore"
        if not ignore_file.exists():
            ignore_file.write_text("*\n")

    @contextmanager
    def _lifecycle(self) -> Iterator[None]:
        self._acquire(LIFECYCLE_LOCK, fcntl.LOCK_EX)
        try:
            yield
        finally:
            self._release(LIFECYCLE_LOCK)

    def _acquire(self, name: str, mode: int) -> None:
        try:
            # Flocks belong to descriptors: with one of its own, no instance disturbs another.
            descriptor = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError as error:
            raise EmbeddedError(
                f"the embedded database in {self.folder} belongs to another user: {error}. "
                "Run as that user, or set FENCELINE_HOME to a folder of your own."
            ) from error
        self._held_locks[name] = descriptor
        fcntl.flock(descriptor, mode)

    def _release(self, name: str) -> None:
        # Closing, not LOCK_UN: it is the only release that a child forked meanwhile cannot make for us.
        descriptor = self._held_locks.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def _is_last_user(self) -> bool:
        try:
            fcntl.flock(self._held_locks[USERS_LOCK], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _forget_in_forked_child(self) -> None:
        # The child shares the parent's descriptors. Closed here, they stay locked for the parent only.
        for descriptor in self._held_locks.values():
            os.close(descriptor)
        self._held_locks = {}
        self._guard = threading.RLock()
