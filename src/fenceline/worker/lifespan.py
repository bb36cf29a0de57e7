"""An app's hooks, run once per process: `@app.on_startup` and `@app.on_shutdown`."""

import inspect
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.errors import FencelineError

log = logging.getLogger("fenceline.worker")


class StartupFailed(FencelineError):
    """A startup hook raised: the process does not start to work."""


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    """Startup hooks run in the order of their registration, shutdown hooks in reverse, each even if another fails.
    Raises StartupFailed; then the shutdown hooks run all the same, for what had been started.
    """
    try:
        for hook in app_parts(app).startup_hooks:
            try:
                await _call(hook)
            except Exception as error:
                raise StartupFailed(
                    f"on_startup {hook.__qualname__} failed, so the worker does not start: "
                    f"{type(error).__name__}: {error}"
                ) from error
        yield
    finally:
        for hook in reversed(app_parts(app).shutdown_hooks):
            try:
                await _call(hook)
            except Exception:
                log.exception("on_shutdown %s failed", hook.__qualname__)


async def _call(hook: Callable[[], Any]) -> None:
    value = hook()
    if inspect.isawaitable(value):
        await value
