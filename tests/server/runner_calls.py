"""Requests of a runner, for tests."""

from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class Claimed:
    """An attempt in a test's hands."""

    job: str
    attempt_id: str
    client: httpx.AsyncClient

    @property
    def headers(self) -> dict[str, str]:
        return {"Fenceline-Attempt": self.attempt_id}

    async def put(self, path: str, body: Any) -> httpx.Response:
        return await self.client.put(f"/v1/jobs/{self.job}/{path}", json=body, headers=self.headers)

    async def post(self, path: str, body: Any) -> httpx.Response:
        return await self.client.post(f"/v1/jobs/{self.job}/{path}", json=body, headers=self.headers)

    async def finish(self, status: str = "succeeded", **more: Any) -> httpx.Response:
        return await self.put("status", {"status": status, **more})


async def register(client: httpx.AsyncClient, **body: Any) -> int:
    response = await client.post("/v1/runners", json={"name": "r", **body})
    assert response.status_code == 201, response.text
    runner_id: int = response.json()["id"]
    return runner_id


async def claim(client: httpx.AsyncClient, runner_id: int, **body: Any) -> list[dict[str, Any]]:
    response = await client.post("/v1/jobs/claim", json={"runner_id": runner_id, **body})
    assert response.status_code == 200, response.text
    attempts: list[dict[str, Any]] = response.json()["attempts"]
    return attempts


async def claim_one(client: httpx.AsyncClient, runner_id: int | None = None, **body: Any) -> Claimed:
    [attempt] = await claim(client, runner_id or await register(client), **body)
    return Claimed(attempt["job"]["id"], attempt["attempt_id"], client)
