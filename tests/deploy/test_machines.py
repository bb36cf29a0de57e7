"""Compose file, Dockerfile and systemd units: they name what exists, and wait long enough at the end."""

import configparser
import re
import shlex
import tomllib
from typing import Any

import pytest
import yaml
from tests.deploy.manifests import DEPLOY, parse

ROOT = DEPLOY.parent


def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return document


@pytest.mark.parametrize("name", ["migrate", "server", "worker"])
def test_compose_runs_commands_that_exist(name: str) -> None:
    service = compose()["services"][name]
    words = [re.sub(r"\$\{\w+:-(.*)\}", r"\1", word) for word in service["command"]]
    command, options = parse(words)
    assert command == name
    if name == "worker":
        assert int(service["stop_grace_period"].removesuffix("s")) > options["grace"] + 2
    assert set(service["depends_on"]) <= set(compose()["services"])


def test_the_image_is_built_from_what_is_there() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (?!--)(.*)$", text, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = {name for group in re.findall(r"\[([a-z,]+)\]'", text) for name in group.split(",")}
    assert wanted
    assert wanted <= set(extras)
    for image in re.findall(r"^FROM (\S+)", text, re.MULTILINE):
        assert re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", image), "a tag can be moved, a digest cannot"
    assert 'ENTRYPOINT ["fenceline"]' in text
    assert re.search(r"^USER \d+$", text, re.MULTILINE), "not as root, and by number: Kubernetes checks that"


def test_the_lock_has_what_the_image_needs_with_hashes() -> None:
    """`make lock` writes it; a dependency that is new in pyproject.toml must be in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = re.search(r"'fenceline\[([a-z,]+)\]'", (DEPLOY / "Dockerfile").read_text())
    assert extras is not None
    wanted = [*project["dependencies"], "hatchling"]
    for extra in extras[1].split(","):
        wanted += project["optional-dependencies"][extra]
    entries = re.split(r"\n(?=\S)", (DEPLOY / "requirements.lock").read_text().strip())
    locked = {entry.partition("==")[0] for entry in entries}
    assert {re.split(r"[\[>=<; ]", one)[0] for one in wanted} <= locked
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+==\S+ \\\n +--hash=sha256:[0-9a-f]{64}", entry), entry


def test_compose_gives_every_program_a_login_of_its_own() -> None:
    services = compose()["services"]
    assert "POSTGRES_USER" not in services["postgres"]["environment"], "what the image makes of it is a superuser"
    assert re.fullmatch(r"postgres:18@sha256:[0-9a-f]{64}", services["postgres"]["image"])
    users = {
        name: re.match(r"postgresql://(\w+):", services[name]["environment"]["FENCELINE_DSN"])
        for name in ("migrate", "server", "worker")
    }
    roles = (DEPLOY / "postgres" / "10-roles.sh").read_text()
    names = [found[1] for found in users.values() if found is not None]
    assert len(set(names)) == len(users)
    assert all(f"create role {name} login" in roles for name in names)


@pytest.mark.parametrize("name", ["fenceline-server.service", "fenceline-worker@.service"])
def test_units_run_commands_that_exist(name: str) -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names are as they are written
    unit.read_string((DEPLOY / "systemd" / name).read_text())
    program, *words = shlex.split(unit["Service"]["ExecStart"].replace("%i", "default"))
    assert program.endswith("/fenceline")
    command, options = parse(words)
    assert name.startswith(f"fenceline-{command}")
    if command == "worker":
        assert int(unit["Service"]["TimeoutStopSec"]) > options["grace"] + 2
        assert unit["Service"]["KillMode"] == "mixed", "SIGTERM is for the supervisor alone"
