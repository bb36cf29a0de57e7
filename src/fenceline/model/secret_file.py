"""Secrets in files: complete or absent, and readable by their owner only."""

import os
import tempfile
from pathlib import Path


def write_secret(path: Path, text: str) -> None:
    """Replace the file atomically: a reader gets the old text or the new one. Raises OSError."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # for its owner only
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
