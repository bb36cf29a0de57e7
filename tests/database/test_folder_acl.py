"""Root's embedded database opens its folders to PostgreSQL's account alone."""

import os
import pwd
import stat
import subprocess
from pathlib import Path

import pytest

from fenceline.database.embedded_account import server_account
from fenceline.database.folder_acl import let_pass, may_pass

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root lets others pass")


def can_read(file: Path, account: str) -> bool:
    return subprocess.run(["cat", str(file)], user=account, capture_output=True, check=False).returncode == 0


def test_parents_stay_closed_to_others(tmp_path: Path) -> None:
    home = tmp_path / "home"
    data, binaries = home / "project" / ".fenceline" / "data", tmp_path / "installation" / "bin"
    data.mkdir(parents=True)
    binaries.mkdir(parents=True)
    (binaries / "postgres").touch(0o755)
    (home / "file").write_text("seen")
    (home / "file").chmod(0o644)
    account = pwd.getpwnam("nobody")
    os.chown(data, account.pw_uid, account.pw_gid)
    home.chmod(0o700)
    assert server_account(data, binaries) is not None
    assert not stat.S_IMODE(home.stat().st_mode) & 0o007
    assert may_pass(home, account.pw_uid)
    assert can_read(home / "file", "nobody")
    assert not can_read(home / "file", "daemon")
    before = os.getxattr(home, "system.posix_acl_access")
    server_account(data, binaries)
    assert os.getxattr(home, "system.posix_acl_access") == before


def test_a_wider_mask_gives_others_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o700)
    first, second = (pwd.getpwnam(name).pw_uid for name in ("daemon", "nobody"))
    let_pass(folder, first)
    folder.chmod(0o700)  # of a folder with a list, the group's bits are the mask: the first is shut out
    assert not may_pass(folder, first)
    let_pass(folder, second)
    assert may_pass(folder, second)
    assert not may_pass(folder, first)
