"""Paths as they stand in logs."""

CALLBACKS = "/v1/callbacks/"


def shown_path(path: str) -> str:
    """Without the secret of a callback."""
    return f"{CALLBACKS}…" if path.startswith(CALLBACKS) else path
