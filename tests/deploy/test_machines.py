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
    assert 'ENTRYPOINT ["fenceline"]' in text
    assert re.search(r"^USER \d+$", text, re.MULTILINE), "not as root, and by number: Kubernetes checks that"


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
