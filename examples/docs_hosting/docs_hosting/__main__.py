"""`make up`: a sample project, the API, Fenceline's server and a worker, on the embedded database, until Ctrl-C."""

import asyncio
import contextlib
import os
import subprocess
import sys

import uvicorn
from cryptography.fernet import Fernet

from docs_hosting.api import web
from docs_hosting.database import app, make_sample
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings

PORT = 8350

GREETING = f"""
project    pipelines of the organization lsst
try        python -m docs_hosting.publish pipelines main tests
           cat .docs/sites/lsst/pipelines/__dashboard.html
dashboard  http://localhost:{PORT}/fenceline/ (a token: fenceline token create --role operator --tenant lsst --name me)
"""


async def main() -> None:
    os.environ.setdefault("DOCS_KEYS", Fernet.generate_key().decode())
    await make_sample()
    server = create_app(ServerSettings(hosts=("localhost", "127.0.0.1")), app)
    web.mount("/fenceline", server)
    worker = subprocess.Popen([sys.executable, "-m", "fenceline", "worker", "docs_hosting.jobs:app"])  # noqa: ASYNC220
    try:
        async with server.router.lifespan_context(server):
            print(GREETING, flush=True)
            await uvicorn.Server(uvicorn.Config(web, port=PORT, log_level="warning")).serve()
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
