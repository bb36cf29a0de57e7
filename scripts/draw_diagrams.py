"""Draws the diagrams of the manual, with mermaid in Chromium: needs npm and Playwright.

Only those that have no picture yet. Pictures that no page shows any more are removed.
What is drawn is committed: to build the manual needs neither.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import sync_playwright
from scripts.manual.diagrams import BLOCK, FOLDER, picture_of
from scripts.manual.links import ELSEWHERE, ROOT

MERMAID = "mermaid@12.3.0"
SETTINGS = """{startOnLoad: false, theme: "neutral", htmlLabels: false,
    flowchart: {htmlLabels: false, rankSpacing: 30, nodeSpacing: 20, padding: 8},
    fontFamily: "system-ui, sans-serif", deterministicIds: true}"""


def diagrams() -> dict[str, str]:
    """Picture → diagram, of all pages."""
    pages = [*(ROOT / "docs").glob("**/*.md"), *(ROOT / source for source in ELSEWHERE)]
    return {picture_of(found): found for page in pages for found in BLOCK.findall(page.read_text("utf-8"))}


def mermaid_script(folder: Path) -> str:
    command = [str(shutil.which("npm")), "pack", "--silent", MERMAID]
    packed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    with tarfile.open(folder / packed.stdout.strip()) as archive:
        script = archive.extractfile("package/dist/mermaid.min.js")
        assert script is not None  # noqa: S101 - the file is in every release
        return script.read().decode()


def sized(drawing: str) -> str:
    """With the size it was drawn at: an `img` would stretch it to the width of the page."""
    _, _, width, height = re.search(r'viewBox="([^"]+)"', drawing)[1].split()  # type: ignore[index]
    return drawing.replace('width="100%"', f'width="{float(width):.0f}" height="{float(height):.0f}"', 1)


def draw(wanted: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.set_content("<body></body>")
        page.add_script_tag(content=mermaid_script(Path(folder)))
        page.evaluate(f"mermaid.initialize({SETTINGS})")
        for name, diagram in wanted.items():
            drawn = page.evaluate("async text => (await mermaid.render('diagram', text)).svg", diagram)
            (FOLDER / name).write_text(sized(drawn) + "\n", "utf-8")
        browser.close()


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = diagrams()
    for picture in FOLDER.glob("*.svg"):
        if picture.name not in wanted:
            picture.unlink()
    draw({name: diagram for name, diagram in wanted.items() if not (FOLDER / name).exists()})


if __name__ == "__main__":
    main()
