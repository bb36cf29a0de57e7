"""Finds the application that a command names: `module:attribute`, from the current folder."""

import importlib
import sys
import traceback
from pathlib import Path

from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.errors import FencelineError

OUR_FOLDER = str(Path(__file__).parents[1])


class AppNotFound(FencelineError):
    """There is no application under that name."""


def load_app(name: str) -> App:
    """Import `module:attribute`; the attribute defaults to `app`. Raises AppNotFound with what is wrong."""
    module_name, _, attribute = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not module_name.startswith(error.name):
            raise AppNotFound(f"{module_name} cannot be imported: {_say(error)}") from error
        raise AppNotFound(
            f"module {module_name!r} is not found from {folder}: write APP as module:attribute"
        ) from error
    except (Exception, SystemExit) as error:
        raise AppNotFound(f"{module_name} cannot be imported: {_say(error)}") from error
    app = getattr(module, attribute or "app", None)
    if not isinstance(app, App):
        raise AppNotFound(
            f"{module_name}:{attribute or 'app'} is {'missing' if app is None else type(app).__qualname__}: "
            "APP must name a Fenceline object"
        )
    try:
        app_parts(app).import_handlers()
    except Exception as error:
        raise AppNotFound(f"the handlers of {module_name} cannot be imported: {_say(error)}") from error
    return app


def _say(error: Exception | SystemExit) -> str:
    """What went wrong and where, in one line."""
    what = str(error) if isinstance(error, FencelineError) else f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):  # a file that cannot be parsed has no frame: its error says itself where
        return what
    frames = traceback.extract_tb(error.__traceback__)
    last = ([frame for frame in frames if not frame.filename.startswith(OUR_FOLDER)] or frames)[-1]
    return f"{what} ({last.filename}, line {last.lineno})"
