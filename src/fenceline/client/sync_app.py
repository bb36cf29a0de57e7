"""The blocking side of the application object."""

from typing import TYPE_CHECKING

from fenceline.client.sync_app_verbs import SyncAppVerbs

if TYPE_CHECKING:
    from fenceline.client.app import App
    from fenceline.client.app_parts import AppParts
    from fenceline.database.migrate import MigrationReport


class SyncFenceline(SyncAppVerbs):
    """The verbs of `Fenceline` for blocking code: `app.sync`."""

    def __init__(self, app: "App", parts: "AppParts") -> None:
        super().__init__(parts)
        self._app = app

    def dsn(self) -> str:
        """The database in use; starts the embedded one if need be."""
        return self._get_database().run(lambda _database: self._app.dsn())

    def migrate(self) -> "MigrationReport":
        """Bring the database's schema up to date. Harmless to repeat."""
        return self._get_database().run(lambda database: database.migrate())

    def close(self) -> None:
        """Close the blocking side's connections, and leave the embedded database unless an event loop uses it."""
        self._parts.close_blocking()
