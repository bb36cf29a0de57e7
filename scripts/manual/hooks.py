"""What MkDocs does besides: takes in pages from elsewhere, turns links into links of the site, shows diagrams."""

import logging
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.manual.diagrams import missing_pictures, show_pictures
from scripts.manual.links import ELSEWHERE, EXAMPLES, PICTURES, ROOT, rewrite_links, source_of
from scripts.manual.reference import PAGES

#: What a search shows first: pages that answer a question before those that list everything.
BOOST = {
    "operations/troubleshooting": 8,
    "guides/one_at_a_time": 5,
    "start/": 3,
    "guides/": 3,
    "operations/": 3,
    "concepts/": 3,
    "moving/": 3,
    "reference/": 1,
    "examples/": 1,
}
logger = logging.getLogger("mkdocs.manual")


def on_config(config: MkDocsConfig) -> None:
    config.nav = [*(config.nav or []), {"Examples": ["examples/index.md", *EXAMPLES.values()]}]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    for picture in PICTURES:
        files.append(File.generated(config, picture, abs_src_path=str(ROOT / picture)))
    for page, make in PAGES.items():
        files.append(File.generated(config, page, content=make()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    path = page.file.src_uri
    page.meta.setdefault("search", {"boost": next((by for start, by in BOOST.items() if path.startswith(start)), 0.3)})
    if missing_pictures(markdown) and source_of(path).startswith("docs/"):
        logger.warning("%s has a diagram that is not drawn: run python scripts/draw_diagrams.py", path)
    return show_pictures(rewrite_links(markdown, path), path)
