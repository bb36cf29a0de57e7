"""Finds the application that a command names: `module:attribute`, from the current folder."""

import importlib
import sys
from pathlib import Path

from fenceline.client.app import Fenceline
from fenceline.errors import FencelineError


class AppNotFound(FencelineError):  # noqa: N818 - as the exceptions in errors.py
    """There is no application under that name."""


def load_app(name: str) -> Fenceline:
    """Import `module:attribute`; the attribute defaults to `app`. Raises AppNotFound with what is wrong."""
    module_name, _, attribute = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not module_name.startswith(error.name):
            raise
        raise AppNotFound(
            f"module {module_name!r} is not found from {folder}: write APP as module:attribute"
        ) from error
    app = getattr(module, attribute or "app", None)
    if not isinstance(app, Fenceline):
        raise AppNotFound(
            f"{module_name}:{attribute or 'app'} is {'missing' if app is None else type(app).__qualname__}: "
            "APP must name a Fenceline object"
        )
    return app
