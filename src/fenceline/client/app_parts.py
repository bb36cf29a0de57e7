"""What engines, workers and servers need of an app, but its users do not: handlers, the way to the database.

app_parts(app).database()
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
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
    from fenceline.client.app import App, BlockingMiddleware, Middleware
    from fenceline.client.credential_providers import CredentialProvider
    from fenceline.client.handler import Handler
    from fenceline.model.sealed import Codec

#: The rule of `check_name` in SQL, so that a bad name is reported where it is written, not when a worker starts.
NAME = re.compile(r"[a-z0-9_.-]{1,64}")


@dataclass(kw_only=True, eq=False)
class AppParts:
    source: Source
    pool_size: int
    delivery: ChosenDelivery
    actor: str
    tracing: bool | None
    codec: "Codec | None"
    credential_provider: "CredentialProvider | None"
    extra_args: Literal["refuse", "ignore"]
    #: Runs claimable jobs, after an enqueue of an app with inline delivery.
    drain: Callable[[], Awaitable[int]]
    #: Imports other modules that have handlers of the app; called when the app is loaded by its name.
    import_handlers: Callable[[], None] = lambda: None
    #: Wraps the function of every async handler that is registered from then on.
    wrap_async: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    handlers: "dict[str, Handler[Any, Any]]" = field(default_factory=dict)
    declared_schedules: Declarations = field(default_factory=Declarations)
    startup_hooks: list[Callable[[], Any]] = field(default_factory=list)
    shutdown_hooks: list[Callable[[], Any]] = field(default_factory=list)
    middlewares: "list[Middleware]" = field(default_factory=list)
    blocking_middlewares: "list[BlockingMiddleware]" = field(default_factory=list)

    def __post_init__(self) -> None:
        self._databases: dict[asyncio.AbstractEventLoop, Database] = {}
        self._sync_database = SyncDatabase(self.make_database, actor=self.actor, tracing=self.tracing, codec=self.codec)

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
        """Close the blocking side's connections, and leave the embedded database unless an event loop still uses it."""
        self._sync_database.close()
        if all(loop.is_closed() for loop in self._databases):
            self.source.close()

    def database(self) -> Database:
        """The way to the database for the running event loop."""
        loop = asyncio.get_running_loop()
        database = self._databases.get(loop)
        if database is None:
            self._drop_ended_loops()
            database = self._databases[loop] = self.make_database()
        return database

    def _drop_ended_loops(self) -> None:
        # The connections of an event loop that ended without close() can only be dropped.
        self._databases = {loop: database for loop, database in self._databases.items() if not loop.is_closed()}

    def make_database(
        self, pool_size: int | None = None, *, settings: Settings | None = None, patient: bool = True
    ) -> Database:
        """A separate way to the database; for `settings` and `patient` see `Database`."""
        return Database(
            self.source,
            pool_size or self.pool_size,
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
            await self.drain()
        else:
            self.sender(database).wake()

    def sender(self, database: Database) -> Sender:
        """What sends messages to the backend; only for an app that has one."""
        if database.sender is None:
            database.sender = Sender(self.delivery.backend(), database.call)
        return database.sender

    def register(self, handler: "Handler[Any, Any]") -> None:
        """Raises InvalidName, or ValueError if another handler has one of its kinds."""
        parts = handler_parts(handler)
        name, kinds = parts.function.__qualname__, (parts.kind, *parts.aliases)
        for kind in kinds:
            if not NAME.fullmatch(kind):
                raise InvalidName(
                    f"kind {kind!r} of {name} is not a valid name: use 1 to 64 of a-z, 0-9, "
                    '"_", "." and "-", and give the handler a kind= if its function is called otherwise'
                )
            if kind in self.handlers:
                other = handler_parts(self.handlers[kind]).function.__qualname__
                raise ValueError(f"kind {kind!r} has two handlers: {other} and {name}; give one of them another kind=")
        self.handlers |= dict.fromkeys(kinds, handler)
        if self.wrap_async is not None and inspect.iscoroutinefunction(parts.function):
            parts.function = self.wrap_async(parts.function)


def app_parts(app: "App") -> AppParts:
    return app._parts  # noqa: SLF001 - the way in
