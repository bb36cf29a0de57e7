"""What the lane says of silence, by the database's clock: 60 seconds of a runner, 5 minutes of a job."""

from typing import Any

import httpx
import pytest

from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings
from fenceline.testing import TestedApp
from infra_console import specs

pytestmark = pytest.mark.fenceline(app="infra_console.specs:app")


async def ask(client: httpx.AsyncClient, method: str, path: str, body: Any = None, **headers: str) -> Any:
    answer = await client.request(method, f"/v1/{path}", json=body, headers=headers)
    assert answer.is_success, answer.text
    return answer.json()


async def test_silence_is_noticed(fenceline_app: TestedApp) -> None:
    await specs.prepare()
    server = create_app(ServerSettings(no_auth=True, maintain=False), fenceline_app)
    transport = httpx.ASGITransport(app=server)
    async with (
        server.router.lifespan_context(server),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        jobs = [await fenceline_app.enqueue(kind, {"spec": "web"}, snapshot={}) for kind in ("destroy", "plan")]
        runner = await ask(client, "POST", "runners", {"name": "site-1", "lanes": ["infra"]})
        assert runner["lease_seconds"] == 60
        claimed = await ask(client, "POST", "jobs/claim", {"runner_id": runner["id"], "count": 2})
        attempts = {attempt["job"]["id"]: attempt["attempt_id"] for attempt in claimed["attempts"]}
        for job in jobs:
            await ask(
                client, "PUT", f"jobs/{job.id}/status", {"status": "running"}, **{"Fenceline-Attempt": attempts[job.id]}
            )
        for _ in range(6):  # five minutes and a bit: the runner lives, one job tells of itself, the other does not
            await fenceline_app.advance(seconds=51)
            await ask(client, "POST", f"runners/{runner['id']}/heartbeat", {"attempts": list(attempts.values())})
            await client.put(
                f"/v1/jobs/{jobs[1].id}/progress",
                json={"done": 1, "total": 2},
                headers={"Fenceline-Attempt": attempts[jobs[1].id]},
            )
        await fenceline_app.system.sweep()
        silent, telling = [await job.get() for job in jobs]
        assert (silent.status, (silent.error or {})["code"]) == ("failed", "stale")
        assert telling.status == "running"
        await fenceline_app.advance(seconds=61)
        status = await ask(client, "GET", "admin/workers/status")
        assert [worker["status"] for worker in status["runners"] if worker["name"] == "site-1"] == ["offline"]
        again = await jobs[0].retry()
        assert (await again.get()).retry_of == jobs[0].id
