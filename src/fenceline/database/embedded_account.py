"""Under which system account the embedded server runs: PostgreSQL refuses to run as root."""

import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fenceline.database.folder_acl import let_pass, may_pass
from fenceline.errors import EmbeddedError

ACCOUNT_NAME = "pgserver"  # the name that the wheel uses, too


@dataclass(frozen=True, slots=True)
class Account:
    """A system account to run PostgreSQL's programs as."""

    uid: int
    gid: int


def server_account(data: Path, binaries: Path) -> Account | None:
    """The account to switch to, or None to stay the current user.

    For root it is the owner of the data, or `pgserver` for new data, and it is let through to both folders.
    """
    owner_uid = data.stat().st_uid if data.exists() else None
    if os.geteuid() != 0:
        if owner_uid not in (None, os.geteuid()):
            raise EmbeddedError(
                f"{data} belongs to user id {owner_uid}, not to you ({os.geteuid()}). "
                "Run as that user, or set FENCELINE_HOME to a folder of your own."
            )
        return None
    entry = pwd.getpwuid(owner_uid) if owner_uid else _find_or_create(ACCOUNT_NAME)
    _let_through(data, entry.pw_uid)
    _let_through(binaries / "postgres", entry.pw_uid)
    _let_read(binaries.parent)
    return Account(entry.pw_uid, entry.pw_gid)


def _find_or_create(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        pass
    useradd = shutil.which("useradd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if useradd is None:
        raise EmbeddedError(
            f"PostgreSQL does not run as root, and without useradd its account {name!r} cannot be made: "
            "make it by hand, or run as another user"
        )
    made = subprocess.run(
        [useradd, "--system", "--no-create-home", "--shell", "/bin/sh", name],
        check=False,
        capture_output=True,
        text=True,
    )
    try:
        # Also right when another process has made it meanwhile and ours failed.
        return pwd.getpwnam(name)
    except KeyError:
        raise EmbeddedError(f"useradd {name} failed: {made.stderr.strip()}") from None


def _let_through(path: Path, uid: int) -> None:
    """Let the account pass the folders above `path`, without letting it list them; nobody else gets in."""
    for folder in path.parents:
        status = folder.stat()
        if status.st_uid == uid or status.st_mode & stat.S_IXOTH:
            continue
        try:
            if not may_pass(folder, uid):
                let_pass(folder, uid)
        except OSError as error:
            raise EmbeddedError(
                f"PostgreSQL does not run as root, and its account {pwd.getpwuid(uid).pw_name!r} cannot pass {folder} "
                f"({error}). Run as another user, set FENCELINE_HOME to a folder elsewhere, or let it: "
                f"chmod o+x {folder}"
            ) from error


def _let_read(installation: Path) -> None:
    """Open an installation that a strict umask has closed to others."""
    if (installation / "bin" / "postgres").stat().st_mode & stat.S_IXOTH:
        return
    for path in [installation, *installation.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        others = stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        path.chmod(mode | others)
