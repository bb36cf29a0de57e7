"""The object store: a folder. Builds lie where they were uploaded; the front end follows the pointer of an edition."""

import hashlib
import json
import mimetypes
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs_hosting.database import Build, Project


def root() -> Path:
    return Path(os.environ.get("DOCS_FOLDER", ".docs"))


def build_folder(build_id: int) -> Path:
    return root() / "builds" / str(build_id)


def site(project: Project) -> Path:
    return root() / "sites" / project.org / project.slug


def list_objects(build: Build) -> Iterator[tuple[str, str, str | None, int]]:
    """Key, hash, type and size of each."""
    folder = build_folder(build.id)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content, kind = path.read_bytes(), mimetypes.guess_type(path.name)[0]
        yield str(path.relative_to(folder)), hashlib.sha256(content).hexdigest(), kind, len(content)


def write(path: Path, text: str) -> None:
    """All of it or nothing: nobody reads half a page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{time.monotonic_ns()}")
    part.write_text(text)
    part.replace(path)


def write_json(path: Path, value: Any) -> None:
    write(path, json.dumps(value, indent=1))


def to_purgatory(org: str, build_id: int) -> None:
    place = root() / "purgatory" / org / str(build_id)
    if build_folder(build_id).exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(build_folder(build_id), place)
        os.utime(place)


def empty_purgatory(org: str, days: int) -> int:
    """Delete for good what has been there for so long."""
    places = [*(root() / "purgatory" / org).glob("*")]
    old = [place for place in places if place.stat().st_mtime < time.time() - days * 86_400]
    for place in old:
        shutil.rmtree(place)
    return len(old)
