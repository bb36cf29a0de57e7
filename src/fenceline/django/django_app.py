"""The `Fenceline` of a Django project."""

import functools
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from fenceline.client.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.context.sync_context import SyncContext
from fenceline.django.database import DjangoDatabase, DjangoSource
from fenceline.django.settings import DjangoSettings


class DjangoFenceline(Fenceline):
    """As `Fenceline`, with three differences.

    Its database is one of `settings.DATABASES`. Blocking verbs (`.sync`) use Django's own connection: what is enqueued
    in `atomic()` is there when that commits, and not at all when it is rolled back. Around every job connections that
    are too old or broken are closed, in the thread that the handler has, as Django does it around a request.
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
    """Middleware of `def` handlers: without it one lost connection would fail every job of its thread, for good."""
    close_old_connections()
    try:
        return call_next()
    finally:
        close_old_connections()


def around_async(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for an async handler, whose ORM calls are made in the thread that asgiref keeps for them."""

    @functools.wraps(function)
    async def with_fresh(*args: Any, **kwargs: Any) -> Any:
        await sync_to_async(close_old_connections)()
        try:
            return await function(*args, **kwargs)
        finally:
            await sync_to_async(close_old_connections)()

    return with_fresh
