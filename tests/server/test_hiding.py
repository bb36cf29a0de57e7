"""Args and results that are not for a role: in no answer, and in no event."""

import json

import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import AsRole, make_token
from tests.server.watching import Watcher, Work, serving
from tests.support.patience import seconds_left

from fenceline import Fenceline
from fenceline.server.server_settings import ServerSettings

CARD = "4111-1111-1111-1111"
HIDDEN = {"$hidden": True}


@pytest.fixture
def settings() -> ServerSettings:
    """Streams stay open until they have shown something, however long that takes."""
    return ServerSettings(maintain=False, token_cache_seconds=0.0, refusals_per_second=0)


@pytest.fixture
async def job(as_role: AsRole, connect: Connect) -> str:
    admin = await as_role("platform_admin")
    body = {"permissions": ["jobs:read", "jobs:hide_args", "jobs:cancel", "jobs:enqueue"], "own_jobs": False}
    assert (await admin.post("/v1/roles/onlooker", json=body)).status_code == 201
    made = await admin.post("/v1/jobs", json={"kind": "a", "args": {"card": CARD}, "snapshot": {"plan": CARD}})
    work = await Work.start(await connect())
    await work.claim()
    id_: str = made.json()["id"]
    await work.connection.execute(
        "select fenceline.save_checkpoint(j.job_id, j.attempt_id, $1) from fenceline.running j",
        json.dumps({"card": CARD}),
    )
    await work.finish(id_, result={"card": CARD})
    return id_


async def test_no_answer_shows_them(as_role: AsRole, job: str) -> None:
    onlooker, operator = await as_role("onlooker"), await as_role("operator")
    for path in (
        f"/v1/jobs/{job}", f"/v1/jobs/{job}?fields=snapshot", "/v1/jobs?fields=args,result", f"/v1/jobs/{job}/steps",
        f"/v1/jobs/{job}/attempts", f"/v1/jobs/{job}/checkpoint",
    ):  # fmt: skip
        answer = await onlooker.get(path)
        assert answer.status_code == 200, path
        assert CARD not in answer.text, path
    shown = (await onlooker.get(f"/v1/jobs/{job}")).json()
    assert (shown["args"], shown["result"], shown["kind"]) == (HIDDEN, HIDDEN, "a")
    again = await onlooker.post(f"/v1/jobs/{job}/retry")
    assert (again.status_code, again.json()["args"]) == (202, HIDDEN)
    assert again.headers["location"] == f"/v1/jobs/{again.json()['id']}"
    assert (await operator.get(f"/v1/jobs/{job}")).json()["args"] == {"card": CARD}


async def test_no_event_shows_them(api: FastAPI, queue_app: Fenceline, job: str) -> None:
    token = await make_token(queue_app, "onlooker")
    headers = {"Authorization": f"Bearer {token}"}
    async with serving(api) as url, httpx.AsyncClient(base_url=url, headers=headers, timeout=seconds_left()) as client:
        for path in (f"/v1/jobs/{job}/stream", "/v1/stream"):
            async with Watcher(client, path) as watcher:
                await watcher.until(lambda seen=watcher: bool(seen.of("status")))  # type: ignore[misc]  # bound now
                assert watcher.of("status")[0]["result"] == HIDDEN
                assert CARD not in str(watcher.events)


async def test_everything_includes_nothing_that_takes_away(as_role: AsRole, job: str) -> None:
    admin = await as_role("platform_admin")
    assert (await admin.get(f"/v1/jobs/{job}")).json()["args"] == {"card": CARD}
