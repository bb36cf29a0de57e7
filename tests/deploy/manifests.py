"""What is in `deploy/`, read as the tools that use it would."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from fenceline.cli import main

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
KUBERNETES = DEPLOY / "kubernetes"


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document is not None]


def manifests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every Kubernetes object, by "file/kind"; a further one of its kind by "file/kind/name"."""
    names: set[str] = set()
    for path in sorted(KUBERNETES.rglob("*.yaml")):
        if path.name != "kustomization.yaml":
            for document in documents(path):
                name = f"{path.relative_to(KUBERNETES)}/{document['kind']}"
                if name in names:
                    name += f"/{document['metadata']['name']}"
                names.add(name)
                yield name, document


def pods(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every pod's spec in an object, wherever it is."""
    if "containers" in document:
        yield document
    for value in document.values():
        if isinstance(value, dict):
            yield from pods(value)


def parse(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """The command that a command line names, and its options; raises what the program would say about it."""
    group: click.Group = main
    words = [word.replace("$(APP)", "jobs:app") for word in arguments]
    context = click.Context(main, info_name="fenceline")
    while True:
        name, command, words = group.resolve_command(context, words)
        assert command is not None
        assert name is not None
        if not isinstance(command, click.Group):
            return name, command.make_context(name, words, parent=context).params
        group, context = command, click.Context(command, info_name=name, parent=context)
