"""The pages of the site, and links between them.

A page is a file of the repository: those of docs/, and those below. Links are written for the repository, so that they
work where its files are read; here they are turned into links of the site. What is no page is named, not linked.
"""

import re
from collections.abc import Callable
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)#\s]*)(#[^)\s]*)?\)")
OUTSIDE = re.compile(r"[a-z]+:|/")
FENCE = re.compile(r"^( *)(```+).*?^\1\2 *$", re.DOTALL | re.MULTILINE)

#: Pages of the site that are not in docs/: file of the repository → page.
ELSEWHERE = {
    "CHANGELOG.md": "background/changelog.md",
    "CONTRIBUTING.md": "background/contributing.md",
    "SECURITY.md": "operations/security_policy.md",
    "src/fenceline/sql/README.md": "background/sql_files.md",
    "examples/README.md": "examples/index.md",
}
EXAMPLES = {
    f"examples/{readme.parent.name}/README.md": f"examples/{readme.parent.name}.md"
    for readme in sorted(ROOT.glob("examples/*/README.md"))
}
ELSEWHERE |= EXAMPLES
#: Pictures of the examples, which are in the site where they are in the repository.
PICTURES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in ROOT.glob("examples/*/*")
    if path.suffix in {".webp", ".png", ".svg", ".jpg"}
)


def source_of(page: str) -> str:
    """The file of the repository that the page is made of."""
    return next((source for source, made in ELSEWHERE.items() if made == page), f"docs/{page}")


def page_of(source: str) -> str | None:
    """The page, or the file of the site, that a file of the repository becomes; of a folder, its README."""
    readme = f"{source}/README.md"
    if source in ELSEWHERE or readme in ELSEWHERE:
        return ELSEWHERE.get(source) or ELSEWHERE[readme]
    if source in PICTURES:
        return source
    return source.removeprefix("docs/") if source.startswith("docs/") else None


def rewrite_links(markdown: str, page: str) -> str:
    """The page's text with links of the site. A link that leads nowhere stays: the build complains."""
    source = source_of(page)

    def rewrite(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        if not target or OUTSIDE.match(target):
            return found[0]
        named = normpath(join(dirname(source), target))
        linked = page_of(named)
        if linked is None:
            return label[1:-1] if (ROOT / named).exists() else found[0]
        return f"{label}({relpath(linked, dirname(page) or '.')}{anchor})"

    return outside_fences(markdown, lambda text: LINK.sub(rewrite, text))


def outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    """The text with everything changed but its code blocks."""
    parts, place = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [change(markdown[place : fence.start()]), fence[0]]
        place = fence.end()
    return "".join([*parts, change(markdown[place:])])
