"""The `Fenceline` of a Django project."""

import functools
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from fenceline.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.context.sync_context import SyncContext
from fenceline.django.database import DjangoDatabase, DjangoSource
from fenceline.django.settings import DjangoSettings


class DjangoFenceline(Fenceline):
    """A `Fenceline` with three differences.

    Its database is one of `settings.DATABASES`. Blocking methods (`.sync`) use Django's own connection: a job that is
    enqueued in `atomic()` exists once that commits, and never does if it is rolled back. Before and after every job it
    closes connections that are too old or broken, in the handler's thread, as Django does around a request.
    """

    def __init__(self, settings: DjangoSettings) -> None:
        super().__init__(**settings.options)
        parts = app_parts(self)
        parts.source = DjangoSource(settings.database)
        blocking = DjangoDatabase(parts.make_database, actor=parts.actor, tracing=parts.tracing, codec=parts.codec)
        blocking.alias = settings.database
        parts.use_sync_database(blocking)
        parts.wrap_async = around_async
        self.settings = settings
        self.middleware(with_fresh_connections)


def with_fresh_connections(_ctx: SyncContext, call_next: Callable[[], Any]) -> Any:
    """Middleware for `def` handlers. Without it, one lost connection would fail every later job of its thread."""
    close_old_connections()
    try:
        return call_next()
    finally:
        close_old_connections()


def around_async(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for an async handler, whose ORM calls run in a thread that asgiref keeps for them."""

    @functools.wraps(function)
    async def with_fresh(*args: Any, **kwargs: Any) -> Any:
        await sync_to_async(close_old_connections)()
        try:
            return await function(*args, **kwargs)
        finally:
            await sync_to_async(close_old_connections)()

    return with_fresh
