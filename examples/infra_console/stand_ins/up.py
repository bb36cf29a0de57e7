"""`make up`: the clouds' doors, the console on the embedded database, and one runner, which knows it by HTTP only."""

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import httpx
import uvicorn
from stand_ins.clouds import AWS_ROLE, AZURE_CLIENT, GCP_ACCOUNT, clouds

from infra_console.console import web
from infra_console.operations import LANE, app

PORT = int(os.environ.get("PORT", "8400"))
URL = f"http://127.0.0.1:{PORT}"
STATE = Path(".fenceline")
RESTART_SECONDS = 3.0
ACCOUNTS = {"aws": AWS_ROLE, "gcp": GCP_ACCOUNT, "azure": AZURE_CLIENT}
SPEC = {"region": "local", "cluster": {"port": 8401}, "database": {"name": "orders"}, "apps": ["shop", "blog"]}


def make_token(dsn: str, role: str, name: str) -> Path:
    file = STATE / f"{name}.token"
    command = [sys.executable, "-m", "fenceline", "token", "create", "--role", role, "--name", name, "--out", str(file)]
    file.unlink(missing_ok=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "FENCELINE_DSN": dsn})
    return file


async def greet(dsn: str) -> None:
    token = make_token(dsn, "operator", "you").read_text().strip()
    async with httpx.AsyncClient(base_url=URL, headers={"Authorization": f"Bearer {token}"}) as client:
        for name, identity in ACCOUNTS.items():
            await client.put(f"/api/account/{name}", json={"identity": identity})
        if not (await client.get("/api/all")).json()["spec"]:
            await client.put("/api/spec/web", json={"account": "aws", "config": SPEC})
            await client.put("/api/runner/site-2", json={"host": "site-1", "release": "1"})
        code = (await client.post("/queue/v1/session/codes")).json()["code"]
    print(f"The console: {URL}/#{code}\n(the link works once; sign in later with the token in {STATE}/you.token)")


async def keep_running(command: list[str], environment: dict[str, str]) -> None:
    """Started again whenever it ends, as whatever runs services would."""
    while True:
        process = await asyncio.create_subprocess_exec(*command, env=environment)
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
        await asyncio.sleep(RESTART_SECONDS)


async def main() -> None:
    server = uvicorn.Server(uvicorn.Config(web, port=PORT, log_level="warning", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has a flag for it, and no event
        await asyncio.sleep(0.05)
    dsn = await app.dsn()
    with clouds() as (_services, where):
        token = make_token(dsn, "runner", "site-1")
        command = [sys.executable, "-m", "fenceline", "runner", "infra_console.operations:app", "--name", "site-1"]
        environment = {
            **os.environ,
            **where,
            "FENCELINE_URL": f"{URL}/queue",
            "FENCELINE_TOKEN_FILE": str(token.resolve()),
        }
        command += ["--lanes", LANE, "--labels", "region=local"]
        runner = asyncio.create_task(keep_running(command, environment))
        try:
            await greet(dsn)
            await serving
        finally:
            runner.cancel()
            await asyncio.wait([runner])


with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main())
