"""docs/openapi.json is what the code says, clients can be generated from it, and it keeps what 0.1.0 promised."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.dashboard.site import ROOT
from tests.foreign.contract import broken, contract_of
from tests.support.tools import needed_tool

HERE = Path(__file__).parent
FILE = ROOT / "docs" / "openapi.json"

#: Of 0.1.0's document, what is not in it any more although it works as it did.
ELSEWHERE = {
    "GET / is gone",  # a page for people
    # There are several ways to sign, each with headers of its own; this is still one of them.
    "POST /v1/triggers/{name}: parameters Fenceline-Signature is gone",
    "POST /v1/triggers/{name}: parameters Fenceline-Timestamp is gone",
}


def test_the_file_is_what_the_code_says() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "write_openapi.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_whoever_knows_the_contract_of_0_1_0_can_go_on() -> None:
    released = json.loads((HERE / "contract_0_1_0.json").read_text())
    assert set(broken(released, contract_of(json.loads(FILE.read_text())))) == ELSEWHERE


def test_what_would_break_a_client_is_found() -> None:
    old = contract_of(json.loads(FILE.read_text()))
    new = {name: {**operation} for name, operation in old.items() if name != "GET /healthz"}
    new["POST /v1/jobs"] |= {"body": ["args"], "demanded": ["kind", "lane"], "success": ["202"]}
    found = broken({name: old[name] for name in ("GET /healthz", "POST /v1/jobs")}, new)
    assert "GET /healthz is gone" in found
    assert "POST /v1/jobs: body kind is gone" in found
    assert "POST /v1/jobs: lane is demanded" in found
    assert "POST /v1/jobs: no 200 any more" in found


def test_operations_have_names_for_people() -> None:
    paths = json.loads(FILE.read_text())["paths"]
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert {"enqueue", "list_jobs", "claim", "signal_job"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.timeout(1800)  # npm may have to install its tools
def test_a_typescript_client_is_generated(tmp_path: Path) -> None:
    npm = needed_tool("npm")
    tools = HERE / "node_modules"
    if not (tools / ".package-lock.json").exists():
        subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=HERE, check=True, capture_output=True)
    shutil.copy(HERE / "client.ts", tmp_path)
    for command in (
        ["openapi-typescript", str(FILE), "--output", str(tmp_path / "api.ts")],
        ["tsc", "--noEmit", "--strict", str(tmp_path / "client.ts")],
    ):
        done = subprocess.run(
            [str(tools / ".bin" / command[0]), *command[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        assert (done.returncode, "error" in said.lower()) == (0, False), said
