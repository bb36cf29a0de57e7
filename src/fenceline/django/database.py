"""The database of a Django project: its DSN for workers, its connections for blocking code."""

from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from fenceline.client.sync_database import SyncDatabase
from fenceline.database.call import Call
from fenceline.database.dsn import Source

T = TypeVar("T")

#: Options that both libpq and asyncpg read from a DSN; Django's other ones are for its own connections.
_DSN_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs", "application_name")


class DjangoSource(Source):
    """The database of an alias, looked up when it is needed: tests switch to another one."""

    def __init__(self, alias: str) -> None:
        super().__init__()
        self._alias = alias

    @property
    def given(self) -> str:
        return dsn_of_alias(self._alias)


class DjangoDatabase(SyncDatabase):
    """Makes blocking calls on the thread's Django connection, and so in its transaction if there is one."""

    alias = "default"

    def call(self, call: Call[T], connection: Any = None) -> T:
        return super().call(call, connections[self.alias] if connection is None else connection)


def dsn_of_alias(alias: str) -> str:
    """The DSN of a database in settings.DATABASES. Raises ImproperlyConfigured."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise ImproperlyConfigured(f"database {alias!r} is {connection.vendor}: Fenceline needs PostgreSQL")
    settings = connection.settings_dict
    options = {name: value for name, value in settings["OPTIONS"].items() if name in _DSN_OPTIONS}
    host, port = settings["HOST"], str(settings["PORT"] or "")
    if host.startswith("/"):  # the folder of a socket
        options |= {"host": host, **({"port": port} if port else {})}
        address = ""
    else:
        address = f"{host}:{port}" if port else host
    who = quote(settings["USER"], safe="")
    if settings["PASSWORD"]:
        who += f":{quote(settings['PASSWORD'], safe='')}"
    query = f"?{urlencode(options, quote_via=quote, safe='/')}" if options else ""
    return f"postgresql://{f'{who}@' if who else ''}{address}/{quote(settings['NAME'], safe='')}{query}"
