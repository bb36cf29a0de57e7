"""Diagrams are written as mermaid, and shown as pictures that are drawn beforehand: readers load no 3 MB of script.

`python scripts/draw_diagrams.py` draws those that are missing and removes those that nobody shows.
"""

import hashlib
import re
from posixpath import dirname, relpath

from scripts.manual.links import ROOT

FOLDER = ROOT / "docs" / "images" / "diagrams"
BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def picture_of(diagram: str) -> str:
    """The name of the picture of a diagram: it changes with the diagram."""
    return f"{hashlib.sha256(diagram.encode()).hexdigest()[:16]}.svg"


def show_pictures(markdown: str, page: str) -> str:
    """The page with pictures in the place of its diagrams; one that is not drawn yet is shown as it is written."""
    folder = relpath("images/diagrams", dirname(page) or ".")

    def show(found: re.Match[str]) -> str:
        name = picture_of(found[1])
        return f"![Diagram]({folder}/{name}){{ .diagram }}" if (FOLDER / name).exists() else f"```text\n{found[1]}```"

    return BLOCK.sub(show, markdown)


def missing_pictures(markdown: str) -> list[str]:
    return [name for name in map(picture_of, BLOCK.findall(markdown)) if not (FOLDER / name).exists()]
