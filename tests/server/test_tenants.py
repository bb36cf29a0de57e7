"""Two tenants on one server: no answer to one depends on what the other has or does."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.operations import MISSING_ID, operations
from tests.server.test_jobs import is_problem
from tests.server.worker import Hand

from fenceline.server.server_settings import ServerSettings
from fenceline.server.subscription import Stream

READS = [operation for operation in operations() if operation.method == "GET" and not operation.is_public]
ON_JOBS = [operation for operation in operations() if "/jobs/{id}" in operation.path]


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(maintain=False, token_cache_seconds=0.0, refusals_per_second=0)


@pytest.fixture(autouse=True)
def _streams_end_when_all_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after some time, in which a slow machine shows less than a quick one."""
    chunks = Stream.chunks

    async def close_and_show(stream: Stream) -> AsyncIterator[bytes]:
        stream.close()
        async for chunk in chunks(stream):
            yield chunk

    monkeypatch.setattr(Stream, "chunks", close_and_show)


async def fill(client: httpx.AsyncClient, hand: Hand) -> dict[str, str]:
    """Jobs in many states, with keys, locks and records; the ids by what they are."""
    ids: dict[str, str] = {}
    jobs: dict[str, dict[str, Any]] = {
        "done": {"priority": 100},
        "claimed": {"priority": 90},
        "queued": {"dedupe_key": "same", "labels": {"project": "x"}},
        "locked": {"resource_lock": "same", "run_at": "2100-01-01T00:00:00Z"},
        "keyed": {"key": "same"},
        "approval": {"needs_approval": True},
        "lane": {"lane": "interactive"},
    }
    for name, options in jobs.items():
        headers = {"Idempotency-Key": f"same-{name}"}
        made = await client.post("/v1/jobs", json={"kind": name, **options}, headers=headers)
        assert made.status_code == 202, made.text
        ids[name] = made.json()["id"]
    assert list(await hand.claim(limit=2)) == [ids["done"], ids["claimed"]]
    rows = await hand.connection.fetchrow(
        "select attempt_id from fenceline.running where job_id = fenceline.parse_public_id($1)", ids["done"]
    )
    assert rows is not None
    await hand.log(ids["done"], rows["attempt_id"], "a line")
    await hand.finish(ids["done"], rows["attempt_id"])
    await client.post(f"/v1/jobs/{ids['approval']}/cancel", json={"reason": "never mind"})
    return ids


async def answers(client: httpx.AsyncClient, ids: dict[str, str]) -> dict[str, Any]:
    """Every read of the tenant, without what differs from moment to moment."""
    found: dict[str, Any] = {}
    for operation in READS:
        paths = [operation.url(id=job) for job in ids.values()] if "/jobs/{id}" in operation.path else [operation.url()]
        for path in paths:
            # Rates look back for seconds only, unless told otherwise: no job may grow too old for them meanwhile.
            response = await client.get(f"{path}?seconds=3600" if path == "/v1/stats/rates" else path)
            found[path] = (
                response.status_code,
                # Ages go on, also in what `explain` says; the place in the journal is the fleet's, like numbers in ids.
                re.sub(
                    r'"(oldest_age_seconds|heartbeat_at|seconds)": [^,}]+|^id: .*$'
                    r"|(less than )?\b\d+ [smhd]\b( \d+ [smhd]\b)?",
                    "",
                    response.text,
                    flags=re.MULTILINE,
                ),
            )
    for query in ({"tenant": "b"}, {"status": "queued"}, {"label": "project:x"}, {"kind": "done"}, {"lane": "default"}):
        response = await client.get("/v1/jobs", params=query)
        found[str(query)] = (response.status_code, response.text)
    return found


@pytest.fixture
async def hand_of_b(connect: Connect) -> Hand:
    """The other tenant's jobs are done by the same fleet, but by another of its workers."""
    connection = await connect()
    return Hand(connection, await connection.fetchval("select id from fenceline.worker"))


async def test_no_answer_to_one_depends_on_the_other(as_role: AsRole, hand: Hand, hand_of_b: Hand) -> None:
    for role in ("operator", "producer", "viewer"):
        ours = await as_role(role, tenant="a", name="same")
        theirs = await as_role("operator", tenant="b", name="same")
        writer = await as_role("operator", tenant="a", name="same")
        if role == "operator":
            ids = await fill(writer, hand)
        before = await answers(ours, ids)
        if role == "operator":
            foreign = await fill(theirs, hand_of_b)
            assert not set(foreign.values()) & set(ids.values())
        else:
            await theirs.post("/v1/jobs", json={"kind": "more"})
            await theirs.post("/v1/jobs/bulk", json={"action": "cancel", "filter": {"status": ["queued", "claimed"]}})
        after = await answers(ours, ids)
        assert after == before, role
        assert (await ours.get("/v1/jobs")).json()["items"]


async def test_a_foreign_job_is_answered_like_a_missing_one(as_role: AsRole, hand: Hand) -> None:
    theirs = await as_role("operator", tenant="b")
    ids = await fill(theirs, hand)
    ours = await as_role("operator", tenant="a")
    state = await answers(theirs, ids)
    for operation in ON_JOBS:
        if operation.permission == "runners:claim":
            continue
        missing = await ours.request(operation.method, operation.url(), json=operation.example)
        for job in ids.values():
            foreign = await ours.request(operation.method, operation.url(id=job), json=operation.example)
            is_problem(foreign, 404, "not_found")
            assert foreign.text.replace(job, "?") == missing.text.replace(MISSING_ID, "?"), operation
    assert await answers(theirs, ids) == state
    by_ids = await ours.post("/v1/jobs/bulk", json={"action": "cancel", "ids": list(ids.values())})
    assert by_ids.json()["reasons"] == {"not_found": 7}
    by_filter = await ours.post("/v1/jobs/bulk", json={"action": "cancel", "filter": {"tenant": "b"}})
    assert by_filter.json()["matched"] == 0
    response = await ours.post("/v1/jobs", json={"kind": "a", "after": [ids["queued"]]})
    is_problem(response, 422, "invalid")
    assert await answers(theirs, ids) == state
