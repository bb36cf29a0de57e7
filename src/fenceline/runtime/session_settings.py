"""How our sessions are set up at the server, whatever the defaults of the role or the database.

A session's settings are startup parameters. Behind a pooler such as PgBouncer there are none: each transaction gets
another session, so only what a function sets for itself holds there.
"""

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fenceline.errors import WrongIsolation

if TYPE_CHECKING:
    from fenceline.runtime.pool import Connection

Settings = Mapping[str, str]

#: Of every connection that we open. A client that is gone, frozen or cut off must not keep its session for hours: the
#: server checks on it while a statement runs, and probes it when it is idle.
EVERY: Settings = {
    "default_transaction_isolation": "read committed",
    "client_connection_check_interval": "2s",
    "tcp_keepalives_idle": "10s",
    "tcp_keepalives_interval": "5s",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10s",
}
#: Not every server supports these: they are tried once.
DOUBTFUL = ("client_connection_check_interval",)


def limits(*, lock_seconds: float, statement_seconds: float) -> dict[str, str]:
    """Settings for a session whose statements wait at most so long for a lock, and run at most so long."""
    return {
        "lock_timeout": f"{lock_seconds * 1000:.0f}ms",
        "statement_timeout": f"{statement_seconds * 1000:.0f}ms",
        "idle_in_transaction_session_timeout": f"{statement_seconds * 1000:.0f}ms",
    }


async def is_pooled(connection: "Connection") -> bool:
    """Whether there is a pooler in between: it announces a made-up process id.

    Uses the simple protocol, which leaves no prepared statement behind.
    """
    import asyncpg

    try:
        await connection.execute(f"do 'begin assert pg_backend_pid() = {connection.get_server_pid()}; end'")
    except asyncpg.AssertError:
        return True
    return False


async def refused_settings(connection: "Connection") -> frozenset[str]:
    """The doubtful settings that this server does not know."""
    import asyncpg

    refused = set()
    for name in DOUBTFUL:
        try:
            await connection.execute(f"set {name} = '{EVERY[name]}'")
        except asyncpg.PostgresError:
            refused.add(name)
    return frozenset(refused)


async def apply(connection: "Connection", settings: Settings) -> None:
    """Set up a session that is already open."""
    await connection.fetch(
        "select set_config(s.name, s.setting, false) from unnest($1::text[], $2::text[]) s(name, setting)",
        list(settings),
        list(settings.values()),
    )


async def refuse_other_isolation(connection: "Connection") -> None:
    """Behind a pooler a session cannot choose its isolation level: the default must be right. Raises WrongIsolation."""
    level = await connection.fetchval("select current_setting('default_transaction_isolation')")
    if level != "read committed":
        raise WrongIsolation(
            f"transactions of this role and database are {level.upper()} by default, Fenceline needs READ COMMITTED, "
            "and the connection pooler in between does not let a session choose",
            hint="alter role … (or alter database …) set default_transaction_isolation = 'read committed'",
        )


def keep_alive(connection: "Connection") -> None:
    """Have the operating system notice a peer that vanished: idle connections and pending reads then fail as for any
    other loss.
    """
    transport = getattr(connection, "_transport", None)
    end: socket.socket | None = transport and transport.get_extra_info("socket")
    if end is None or end.family not in (socket.AF_INET, socket.AF_INET6):
        return
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 10),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 20_000),
    ):
        if hasattr(socket, option):
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
