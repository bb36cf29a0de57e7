"""What engines, workers and servers need of an app, and its users do not: registered handlers, the way to the database.

app_parts(app).database()
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from fenceline.backends.chosen import ChosenDelivery
from fenceline.client.handler_parts import handler_parts
from fenceline.client.schedule_decorator import Declarations
from fenceline.client.sync_database import SyncDatabase
from fenceline.database.dsn import Source
from fenceline.errors import InvalidName
from fenceline.runtime.database import Database
from fenceline.runtime.sender import Sender
from fenceline.runtime.session_settings import Settings

if TYPE_CHECKING:
    from fenceline.client.app import BlockingMiddleware, Fenceline, Middleware
    from fenceline.client.credential_providers import CredentialProvider
    from fenceline.client.handler import Handler
    from fenceline.model.sealed import Codec

#: As `check_name` in SQL has it, so that a wrong one is told where it is written, not when a worker starts.
NAME = re.compile(r"[a-z0-9_.-]{1,64}")


class AppParts:
    def __init__(
        self,
        source: Source,
        *,
        pool_size: int,
        delivery: ChosenDelivery,
        actor: str,
        tracing: bool | None,
        codec: "Codec | None",
        credential_provider: "CredentialProvider | None",
        extra_args: Literal["refuse", "ignore"],
        drain: Callable[[], Awaitable[int]],
    ) -> None:
        """`drain`: runs what is claimable, after an enqueue of an app whose delivery is inline."""
        self.source = source
        self.delivery = delivery
        self.actor = actor
        self.tracing = tracing
        self.codec = codec
        self.credential_provider = credential_provider
        self.extra_args = extra_args
        #: Imports what else has handlers of the app; called by whoever loads the app by its name.
        self.import_handlers: Callable[[], None] = lambda: None
        self.handlers: dict[str, Handler[Any, Any]] = {}
        self.declared_schedules = Declarations()
        self.startup_hooks: list[Callable[[], Any]] = []
        self.shutdown_hooks: list[Callable[[], Any]] = []
        self.middlewares: list[Middleware] = []
        self.blocking_middlewares: list[BlockingMiddleware] = []
        self._pool_size = pool_size
        self._drain = drain
        self._databases: dict[asyncio.AbstractEventLoop, Database] = {}
        #: Around the function of every async handler that is registered from then on.
        self.wrap_async: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
        self._sync_database = SyncDatabase(self.make_database, actor=actor, tracing=tracing, codec=codec)

    def sync_database(self) -> SyncDatabase:
        """The way to the database for blocking code."""
        return self._sync_database

    def use_sync_database(self, database: SyncDatabase) -> None:
        self._sync_database = database

    async def close(self) -> None:
        """Close this event loop's connections and those of the blocking side."""
        database = self._databases.pop(asyncio.get_running_loop(), None)
        self._drop_ended_loops()
        if database is not None:
            await database.close()
        await asyncio.to_thread(self.close_blocking)

    def close_blocking(self) -> None:
        self._sync_database.close()
        self.leave_database()

    def database(self) -> Database:
        """The way to the database for the running event loop."""
        loop = asyncio.get_running_loop()
        database = self._databases.get(loop)
        if database is None:
            self._drop_ended_loops()
            database = self._databases[loop] = self.make_database()
        return database

    def _drop_ended_loops(self) -> None:
        # Connections of an event loop that has ended without close() can only be dropped.
        self._databases = {loop: database for loop, database in self._databases.items() if not loop.is_closed()}

    def leave_database(self) -> None:
        """Leave the embedded database if it is in use, unless an event loop still uses it."""
        if all(loop.is_closed() for loop in self._databases):
            self.source.close()

    def use_few_connections(self) -> None:
        """One for calls, one for transactions, one to wait for jobs; before any is made."""
        self._pool_size = 1

    def make_database(
        self, pool_size: int | None = None, *, settings: Settings | None = None, patient: bool = True
    ) -> Database:
        """A way to the database of its own. `settings`: of its sessions at the server, see `runtime.session_settings`;
        `patient`: see `Database`.
        """
        return Database(
            self.source,
            pool_size or self._pool_size,
            actor=self.actor,
            tracing=self.tracing,
            settings=settings,
            codec=self.codec,
            patient=patient,
            enqueued=self._enqueued if self.delivery.name == "inline" or self.delivery.make_backend else None,
        )

    async def _enqueued(self, database: Database) -> None:
        """After the commit of an enqueue: send what is due, or run it."""
        if self.delivery.make_backend is None:
            await self._drain()
        else:
            self.sender(database).wake()

    def sender(self, database: Database) -> Sender:
        """Whoever sends this database's messages to the backend. Only where there is one."""
        if database.sender is None:
            database.sender = Sender(self.delivery.backend(), database.call)
        return database.sender

    def register(self, handler: "Handler[Any, Any]") -> None:
        name = handler_parts(handler).function.__qualname__
        kinds = (handler.kind, *handler_parts(handler).aliases)
        for kind in kinds:
            if not NAME.fullmatch(kind):
                raise InvalidName(
                    f"kind {kind!r} of {name} is not a valid name: use 1 to 64 of a-z, 0-9, "
                    '"_", "." and "-", and give the handler a kind= if its function is called otherwise'
                )
            if kind in self.handlers:
                raise ValueError(
                    f"kind {kind!r} has two handlers: {handler_parts(self.handlers[kind]).function.__qualname__} and "
                    f"{name}; give one of them another kind="
                )
        self.handlers |= dict.fromkeys(kinds, handler)
        if self.wrap_async is not None and inspect.iscoroutinefunction(handler_parts(handler).function):
            handler_parts(handler).function = self.wrap_async(handler_parts(handler).function)


def app_parts(app: "Fenceline") -> AppParts:
    return app._parts  # noqa: SLF001 - this is the door
