"""The files of the dashboard, read once: each with its type, its hash for caches, and compressed."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "assets"

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    compressed: bytes
    media_type: str
    etag: str


@cache
def assets() -> dict[str, Asset]:
    """By the path below `/assets/`."""
    return {
        path.relative_to(FOLDER).as_posix(): make_asset(path.read_bytes(), _TYPES[path.suffix])
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in _TYPES
    }


def make_asset(content: bytes, media_type: str) -> Asset:
    digest = hashlib.sha256(content).hexdigest()[:32]
    return Asset(content, gzip.compress(content, 9, mtime=0), media_type, f'"{digest}"')
