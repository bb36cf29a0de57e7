"""How workers with a database of their own come by their jobs."""

from collections.abc import Mapping

from fenceline.client.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.delivery.messages import MessageDelivery
from fenceline.delivery.postgres import PostgresDelivery


class DatabaseAccess:
    name = "postgres"  # leases are kept there, whatever brings the jobs
    wants_heartbeats = False

    def __init__(self, app: Fenceline, *, transactions: int = 1, owns_app: bool = False) -> None:
        """As for `PostgresDelivery`."""
        self._app = app
        self._transactions = transactions
        self._owns_app = owns_app

    @property
    def where(self) -> str:
        return app_parts(self._app).database().where

    def connect(self) -> PostgresDelivery:
        make_backend = app_parts(self._app).delivery.make_backend
        if make_backend is None:
            return PostgresDelivery(self._app, transactions=self._transactions, owns_app=self._owns_app)
        return MessageDelivery(self._app, make_backend(), transactions=self._transactions, owns_app=self._owns_app)

    async def run(self) -> None:
        """Nothing to do."""

    async def environment(self) -> Mapping[str, str]:
        return {"FENCELINE_DSN": await self._app.dsn()}

    async def close(self) -> None:
        """The app's connections are the app's."""
