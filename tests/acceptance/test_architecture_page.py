"""docs/architecture.md names files and what is in them: each is there."""

import ast
import re
from importlib.resources import files
from pathlib import Path

SOURCE = Path(str(files("fenceline")))
PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()


def test_every_stop_of_the_tour_is_there() -> None:
    stops = re.findall(r"^\| `([\w/]+\.(?:py|sql))` \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert len(stops) > 30
    for path, name in stops:
        text = (SOURCE / path).read_text()
        assert re.search(rf"(?:class|def|function fenceline\.)\s*{name}\b|function fenceline\.{name}\(", text), (
            path,
            name,
        )


def test_every_package_has_its_place_and_every_path_exists() -> None:
    packages = {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file()}
    named = {
        name
        for row in re.findall(r"^\| (`\w+/`(?:, `\w+/`)*) \|", PAGE, re.MULTILINE)
        for name in re.findall(r"(\w+)/", row)
    }
    assert packages | {"sql"} == named
    for path in re.findall(r"`((?:\w+/)+\w+\.(?:py|sql))`", PAGE.replace("tests/acceptance", "")):
        assert (SOURCE / path).is_file() or path.startswith("/"), path


def test_every_package_says_what_is_in_it() -> None:
    for start in SOURCE.glob("**/__init__.py"):
        text = ast.get_docstring(ast.parse(start.read_text())) or ""
        if start.parent.name not in {
            "demo",
            "fenceline",
            "compat",
            "utils",
            "management",
            "commands",
        }:
            assert len(text.splitlines()) > 2, start.parent
        for name in re.findall(r"`([\w/]+\.py)`", text):
            places = (start.parent / name, SOURCE / name, SOURCE.parents[1] / name)
            assert any(place.is_file() for place in places), (start.parent.name, name)
