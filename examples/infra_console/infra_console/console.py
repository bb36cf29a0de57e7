"""The console: a page, a few routes for what is its own, and the queue, for browsers and runners, at /queue."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, LiteralString

import httpx
import psycopg
from fastapi import Body, Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings
from infra_console.operations import app
from infra_console.specs import OPERATIONS, ROWS, options, prepare

server = create_app(ServerSettings(), app)
#: Who somebody is, is asked where people sign in.
queue = httpx.AsyncClient(transport=httpx.ASGITransport(app=server), base_url="http://127.0.0.1")

Table = Literal["account", "spec", "runner"]
SAVE: dict[Table, LiteralString] = {
    "account": "insert into account (name, identity) values (%(name)s, %(identity)s)"
    " on conflict (name) do update set identity = excluded.identity",
    "spec": "insert into spec (name, account, config) values (%(name)s, %(account)s, %(config)s)"
    " on conflict (name) do update set account = excluded.account, config = excluded.config",
    "runner": "insert into runner (name, host, release) values (%(name)s, %(host)s, %(release)s)"
    " on conflict (name) do update set host = excluded.host, release = excluded.release",
}


@asynccontextmanager
async def lifespan(_web: FastAPI) -> AsyncIterator[None]:
    await prepare()
    async with app, server.router.lifespan_context(server), queue:  # a mounted app is started by whoever mounts it
        yield


async def actor(request: Request) -> str:
    """Who is signed in, by the cookie or a token. A change takes what only this page knows of the session."""
    shown = {name: request.headers[name] for name in ("authorization", "cookie") if name in request.headers}
    answer = await queue.get("/v1/session", headers=shown)
    if answer.is_error:
        raise HTTPException(answer.status_code, answer.json()["detail"])
    session = answer.json()
    may = "jobs:read" if request.method == "GET" else "jobs:enqueue"
    foreign = request.method != "GET" and session["csrf"] not in (None, request.headers.get("x-fenceline-csrf"))
    if foreign or may not in session["permissions"]:
        raise HTTPException(403, f"this takes the permission {may}, and the session's CSRF token")
    return str(session["actor"])


async def transaction() -> AsyncIterator[psycopg.AsyncConnection[dict[str, Any]]]:
    """One per request: committed before the answer is sent, rolled back when the request fails."""
    async with await psycopg.AsyncConnection.connect(await app.dsn(), row_factory=dict_row) as connection:
        yield connection


Actor = Annotated[str, Depends(actor)]
Connection = Annotated[psycopg.AsyncConnection[dict[str, Any]], Depends(transaction, scope="function")]
web = FastAPI(lifespan=lifespan)


@web.get("/")
async def page() -> FileResponse:
    return FileResponse(Path(__file__).with_name("page.html"))


@web.get("/api/all")
async def everything(conn: Connection, _: Actor) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for table in ("account", "spec", "component", "runner"):
        rows = await conn.execute(sql.SQL("select * from {} order by name").format(sql.Identifier(table)))
        found[table] = await rows.fetchall()
    return found


@web.put("/api/{table}/{name}", status_code=204)
async def save(table: Table, name: str, given: Annotated[dict[str, Any], Body()], conn: Connection, _: Actor) -> None:
    try:
        await conn.execute(SAVE[table], {**given, "name": name, "config": Jsonb(given.get("config"))})
    except psycopg.Error as error:
        raise HTTPException(422, f"{table} {name!r}: {error.diag.message_primary or error}") from error


@web.post("/api/{table}/{name}/{operation}", status_code=202)
async def operate(table: Table, name: str, operation: str, conn: Connection, actor: Actor) -> dict[str, str]:
    """Enqueue, and answer at once: what the job keeps is what the row says in this very transaction."""
    row = await (await conn.execute(ROWS[table].format("%s") + " for share", [name])).fetchone()
    if row is None or OPERATIONS.get(operation) != table:
        raise HTTPException(404, f"there is no {operation} of {table} {name!r}")
    try:
        chosen = options(operation, row)
    except ValueError as error:
        raise HTTPException(409, str(error)) from error
    job = await app.enqueue(operation, {table: name}, **chosen, actor=actor, connection=conn)
    return {"job": job.id}


web.mount("/queue", server)
