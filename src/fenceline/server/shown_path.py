"""Paths as they stand in logs."""

CALLBACKS = "/v1/callbacks/"


def shown_path(path: str) -> str:
    """Without the secret of a callback, wherever an application has mounted us."""
    before, found, _secret = path.partition(CALLBACKS)
    return f"{before}{found}…" if found else path
