"""Third-party scripts: listed with version, licence and hash; exactly that, and what npm has where npm is."""

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from tests.dashboard.site import ROOT
from tests.support.tools import needed_tool

pytestmark = pytest.mark.xdist_group("npm")  # one folder of what npm installs, for all

VENDOR = ROOT / "src/fenceline/server/dashboard/assets/vendor"
ASSETS = VENDOR.parent
MANIFEST = json.loads((VENDOR / "manifest.json").read_text())


def test_every_script_is_in_the_manifest_with_its_hash() -> None:
    listed = {entry["file"]: entry["sha256"] for entry in MANIFEST}
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.suffix in {".js", ".css"}
    }
    assert found == listed


def test_versions_are_those_of_the_lock_file_and_licences_are_shipped() -> None:
    locked = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    for entry in MANIFEST:
        package = locked[f"node_modules/{entry['package']}"]
        assert (entry["version"], entry["npm_integrity"]) == (package["version"], package["integrity"]), entry
        assert entry["license"] in {"MIT", "Apache-2.0"}
        assert (VENDOR / f"LICENSE-{entry['package'].replace('/', '-').lstrip('@')}").is_file()


def test_scripts_of_ours_name_no_other_host() -> None:
    for path in ASSETS.rglob("*"):
        if path.suffix in {".js", ".css", ".html"} and VENDOR not in path.parents:
            assert "://" not in path.read_text(), path


@pytest.fixture(scope="module")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what the lock file names, installed once."""
    program = needed_tool("npm")
    if not (ROOT / "node_modules" / ".package-lock.json").exists():
        subprocess.run([program, "ci", "--no-audit", "--no-fund"], cwd=ROOT, check=True, capture_output=True)
    return ROOT / "node_modules"


def test_what_is_shipped_is_what_npm_has(npm: Path) -> None:
    subprocess.run([str(ROOT / "scripts/vendor-dashboard"), "--check"], check=True)
    axe = Path(__file__).with_name("vendor") / "axe.min.js"
    assert axe.read_bytes() == (npm / "axe-core" / "axe.min.js").read_bytes()


def test_types_are_right(npm: Path) -> None:
    done = subprocess.run(["npm", "run", "--silent", "check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
