"""The worked systems are small, stand on what the manual shows, and say how they differ from their documents."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SYSTEMS = [makefile.parent for makefile in sorted(ROOT.glob("examples/*/Makefile"))]
MANUAL = "".join(page.read_text() for page in ROOT.glob("docs/**/*.md"))
#: Python of the application itself; its page, playbooks, manifests, stand-ins for other systems and tests are not.
MAX_LINES = 600

each = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)


def modules(system: Path) -> list[Path]:
    return sorted((system / system.name).glob("*.py"))


def test_there_are_five() -> None:
    assert len(SYSTEMS) == 5


@each
def test_it_is_small(system: Path) -> None:
    assert sum(len(module.read_text().splitlines()) for module in modules(system)) <= MAX_LINES


@each
def test_it_uses_only_what_the_manual_names(system: Path) -> None:
    used = set()
    for module in modules(system):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert not any(alias.name.startswith("_") for alias in node.names), module
                used.add(node.module or "")
            elif isinstance(node, ast.Import):
                used |= {alias.name for alias in node.names}
    ours = {name for name in used if name.split(".")[0] == "fenceline"}
    assert ours
    assert sorted(name for name in ours if f"`{name}`" not in MANUAL and f"from {name} import" not in MANUAL) == []


@each
def test_its_readme_has_what_a_newcomer_looks_for(system: Path) -> None:
    text = (system / "README.md").read_text()
    assert re.search(r"^```mermaid$|^!\[", text, re.MULTILINE), "a picture"
    assert "`make up`" in text
    assert "\n## In the document, and here\n\n| in the document | in Fenceline |\n" in text
    assert "\n## Written by hand that a queue should give\n\nNothing." in text
    assert re.search(r"^up: install$", (system / "Makefile").read_text(), re.MULTILINE)
