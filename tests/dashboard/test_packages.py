"""What is built to be installed: the dashboard is in the wheel, and what its tests need in the source archive."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.dashboard.site import ROOT
from tests.support.tools import needed_tool

DASHBOARD = "fenceline/server/dashboard"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: git does not say which files there are")
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", str(folder)], cwd=ROOT, check=True)
    return folder


def committed(*under: str) -> set[str]:
    command = [needed_tool("git"), "ls-files", *under]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(listed.stdout.split())


def test_every_asset_is_in_the_wheel(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = {f"src/{name}" for name in wheel.namelist()}
    wanted = committed(f"src/{DASHBOARD}/assets")
    assert len(wanted) > 30
    assert wanted - names == set()


def test_what_the_tests_need_is_in_the_source_archive(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = committed("src", "tests", "scripts", "docs") | {"package.json", "package-lock.json", "pyproject.toml"}
    assert wanted - names == set()
