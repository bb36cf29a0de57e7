"""Leases of runners, kept over HTTP. The server does the fleet's maintenance."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Self
from uuid import UUID

from fenceline.database.calls.workers import LeaseNotice
from fenceline.delivery.contract import Death
from fenceline.errors import NotFound
from fenceline.model.public_id import format_id
from fenceline.runtime.http_client import Client
from fenceline.runtime.http_tls import RunnerTls
from fenceline.runtime.http_token import Token

#: How long to try to tell the server of a runner's death; after that its lease has run out anyway.
LAST_SECONDS = 30.0


class HttpLeases:
    def __init__(self, client: Client, answer_seconds: float) -> None:
        self._client = client
        self._answer_seconds = answer_seconds

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], answer_seconds: float) -> Self:
        """As `HttpDelivery.environment` wrote it."""
        token, tls = Token.from_environment(environment), RunnerTls.from_environment(environment)
        return cls(Client(environment["FENCELINE_URL"], token, tls=tls), answer_seconds)

    async def renew(self, worker_ids: Sequence[int], blocked: Mapping[int, Mapping[str, Any]]) -> list[LeaseNotice]:
        """One try for each. Raises ServerAway."""
        notices: list[LeaseNotice] = []
        for worker_id in worker_ids:
            body = {"blocked": _blocked(blocked[worker_id])} if worker_id in blocked else {}
            path = f"/v1/runners/{worker_id}/heartbeat"
            try:
                answer = await self._client.ask_once(
                    "POST", path, json.dumps(body), answer_seconds=self._answer_seconds
                )
            except NotFound:
                notices.append(LeaseNotice(worker_id, None, "lost"))
            else:
                notices += [LeaseNotice(worker_id, UUID(text), "cancel") for text in answer["cancel"]]
        return notices

    async def maintain(self) -> None:
        """The server does it."""

    async def report_death(self, worker_id: int, report: Mapping[str, Any]) -> Death:
        """Raises TimeoutError after some seconds; by then the lease is over anyway."""
        async with asyncio.timeout(LAST_SECONDS):
            body = json.dumps(report, default=str)
            answer = await self._client.ask("POST", f"/v1/runners/{worker_id}/crash", body)
        return Death(answer["ended"])  # the server keeps to itself which jobs are suspects

    async def sign_off(self, worker_id: int, fail_kinds: Sequence[str]) -> None:
        body = json.dumps({"fail_kinds": list(fail_kinds)})
        await self._client.ask("POST", f"/v1/runners/{worker_id}/stop", body)

    async def close(self) -> None:
        await self._client.close()


def _blocked(seen: Mapping[str, Any]) -> dict[str, Any]:
    job_id = seen["job_id"]
    return {"seconds": seen["seconds"], "job": None if job_id is None else format_id(job_id)}
