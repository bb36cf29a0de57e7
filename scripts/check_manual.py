"""Fails where a built page would load something from another host, or where a link of the site leads nowhere.

python scripts/check_manual.py dist/docs
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser loads by itself. Links that people follow may lead anywhere.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
OF_CSS = re.compile(r"url\(\s*['\"]?(https?:)?//|@import\s")


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {value for value in (given.get("id"), given.get("name")) if value}
        loaded = given.get(LOADED.get(tag, ""))
        if loaded and given.get("rel") not in {"canonical", "next", "prev"}:
            self.loads.append(loaded)
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))


def is_elsewhere(link: str) -> bool:
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def faults(site: Path) -> list[str]:
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in site.glob("**/*.html")}
    found = [
        f"{sheet}: loads from another host"
        for sheet in site.glob("**/*.css")
        if OF_CSS.search(sheet.read_text("utf-8"))
    ]
    for path, page in pages.items():
        found += [f"{path}: loads {load}" for load in page.loads if is_elsewhere(load)]
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if is_elsewhere(link) or path.name == "404.html":
                continue
            if not target.exists():
                found.append(f"{path}: {link} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{path}: {link} has no such place")
    return found


def main() -> None:
    found = faults(Path(sys.argv[1]))
    sys.exit("\n".join(found) if found else 0)


if __name__ == "__main__":
    main()
