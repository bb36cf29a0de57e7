"""`make up`: sample tables, the API and the scaler, on the embedded database of this folder, until Ctrl-C."""

import asyncio
import contextlib

import uvicorn

from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings
from table_maintenance.api import web
from table_maintenance.catalog import make_sample_table
from table_maintenance.jobs import app
from table_maintenance.scaler import Scaler

PORT = 8330

GREETING = f"""
tables   sales.orders, sales.customers, sales.returns, each with a dozen small files
try      curl -i localhost:{PORT}/tables/sales/orders/maintenance -H 'Content-Type: application/json' \\
           -d '{{"actions": ["rewrite_data_files", "expire_snapshots", "remove_orphan_files"], "keep_hours": 0}}'
then     curl localhost:{PORT}/jobs/…
         fenceline jobs steps …
dashboard  http://localhost:{PORT}/queue/ (a token: fenceline token create --role operator --name me)
"""


async def main() -> None:
    for table in ("orders", "customers", "returns"):
        make_sample_table("sales", table)
    await app.system.depth()  # the embedded database is there now, for the programs that the scaler starts
    server = create_app(ServerSettings(hosts=("localhost", "127.0.0.1")), app)
    web.mount("/queue", server)
    async with server.router.lifespan_context(server):
        print(GREETING, flush=True)
        scaling = asyncio.create_task(Scaler().run(poll_seconds=2.0))
        await uvicorn.Server(uvicorn.Config(web, port=PORT, log_level="warning")).serve()
        scaling.cancel()
        await asyncio.wait([scaling])


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
