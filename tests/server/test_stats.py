"""What operators ask: counted by hand, of their own tenant, bounded; the same from Python."""

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.watching import Work

from fenceline import Fenceline
from fenceline.server import stats as views


@pytest.fixture
async def work(connect: Connect) -> Work:
    return await Work.start(await connect())


async def fill(work: Work) -> dict[str, str]:
    """Two tenants; of acme: 3 a queued, 1 scheduled, 1 awaiting approval, 2 running, and ends of every kind."""
    jobs = {}
    for tenant in ("acme", "other"):
        for outcome in ("succeeded", "succeeded", "succeeded_with_errors", "failed_for_good", "cancelled"):
            await work.run("a", outcome, tenant=tenant)
        await work.run("b", tenant=tenant)
        jobs[f"{tenant} x"] = await work.enqueue("a", tenant=tenant, labels={"project": "x"})
        jobs[f"{tenant} y"] = await work.enqueue("c", tenant=tenant, labels={"project": "y"})
        await work.claim(limit=2)
        await work.start_attempt(jobs[f"{tenant} x"])
        await work.progress(jobs[f"{tenant} x"], "load", done=1)
    for tenant in ("acme", "other", "acme", "acme"):
        await work.enqueue("a", tenant=tenant)
    await work.enqueue("a", tenant="acme", run_at="2099-01-01T00:00:00Z")
    await work.enqueue("a", tenant="acme", needs_approval=True)
    return jobs


async def get(client: httpx.AsyncClient, path: str) -> dict[str, list[dict[str, object]]]:
    response = await client.get(path)
    assert response.status_code == 200, response.text
    name = path.partition("?")[0].rpartition("/")[2].title()
    getattr(views, f"{name}View").model_validate(response.json())
    answer: dict[str, list[dict[str, object]]] = response.json()
    return answer


async def test_failures_are_grouped_by_their_error(as_role: AsRole, work: Work) -> None:
    for tenant, number in (("acme", 1), ("acme", 22), ("other", 3)):
        job = await work.enqueue("a", tenant=tenant)
        await work.claim()
        await work.finish(job, "failed_for_good", error={"type": "OSError", "message": f"disk {number} is full"})
    acme = await as_role("viewer", tenant="acme")
    [row] = (await get(acme, "/v1/stats/failures"))["items"]
    assert (row["kind"], row["type"], row["message"], row["count"]) == ("a", "OSError", "disk 22 is full", 2)


async def test_the_wait_before_a_start(as_role: AsRole, work: Work) -> None:
    for tenant in ("acme", "acme", "other"):
        await work.run("a", tenant=tenant)
    await work.connection.execute(
        "update fenceline.history set claimed_at = fenceline.id_time(job_id) + interval '3 s', started_at = null"
    )
    acme = await as_role("viewer", tenant="acme")
    rows = (await get(acme, "/v1/stats/starts?bucket_seconds=86400"))["items"]
    assert sum(int(str(row["started"])) for row in rows) == 2
    assert {round(float(str(row["p50_seconds"])), 3) for row in rows} == {3.0}


async def test_stats_over_http(as_role: AsRole, work: Work) -> None:
    jobs = await fill(work)
    acme = await as_role("viewer", tenant="acme")
    [backlog] = (await get(acme, "/v1/stats/backlog"))["items"]
    assert {key: backlog[key] for key in ("kind", "queued", "scheduled", "waiting", "awaiting_approval")} == {
        "kind": "a", "queued": 3, "scheduled": 1, "waiting": 0, "awaiting_approval": 1,
    }  # fmt: skip

    active = await get(acme, "/v1/stats/active")
    assert [(item["id"], item["phase"], item["status"]) for item in active["items"]] == [
        (jobs["acme x"], "load", "running"), (jobs["acme y"], None, "claimed"),
    ]  # fmt: skip
    assert {(row["kind"], row["phase"], row["count"]) for row in active["phases"]} == {("a", "load", 1), ("c", None, 1)}
    for query, wanted in (
        ("label=project:y", ["acme y"]), ("phase=load", ["acme x"]), ("kind=c&kind=a", ["acme x", "acme y"]),
        ("label=project:y&phase=load", []), ("lane=maintenance", []), ("limit=1", ["acme x"]),
    ):  # fmt: skip
        found = (await get(acme, f"/v1/stats/active?{query}"))["items"]
        assert [item["id"] for item in found] == [jobs[name] for name in wanted], query

    errors = (await get(acme, "/v1/stats/errors"))["items"]
    assert [(row["kind"], row["ended"], row["failed"], row["error_rate"]) for row in errors] == [
        ("a", 5, 1, 0.4), ("b", 1, 0, 0),
    ]  # fmt: skip
    [throughput] = (await get(acme, "/v1/stats/throughput?bucket_seconds=31536000"))["items"]
    assert (throughput["tenant"], throughput["ended"], throughput["succeeded"]) == ("acme", 6, 3)
    slow = (await get(acme, "/v1/stats/slow?kind=a&limit=3"))["items"]
    assert slow[0]["id"] == jobs["acme x"]
    assert len(slow) == 3
    assert {row["tenant"] for row in slow} == {"acme"}
    everything = await as_role("platform_admin")
    found = (await get(everything, "/v1/stats/throughput?bucket_seconds=31536000"))["items"]
    assert [row["tenant"] for row in found] == ["acme", "other"]
    assert (await acme.get("/v1/stats/slow?seconds=0")).status_code == 422
    assert (await (await as_role("producer")).get("/v1/stats/backlog")).status_code == 403


async def test_a_role_with_own_jobs_sees_only_those(as_role: AsRole, work: Work) -> None:
    admin = await as_role("platform_admin")
    await admin.post("/v1/roles/own", json={"permissions": ["workers:view", "jobs:enqueue"], "own_jobs": True})
    ann = await as_role("own", name="ann")
    await work.enqueue("a")
    own = (await ann.post("/v1/jobs", json={"kind": "a"})).json()["id"]
    await ann.post("/v1/jobs", json={"kind": "b", "run_in": 60})
    await work.enqueue("b", needs_approval=True)
    backlog = (await get(ann, "/v1/stats/backlog"))["items"]
    assert {(row["kind"], row["queued"], row["scheduled"], row["awaiting_approval"]) for row in backlog} == {
        ("a", 1, 0, 0),
        ("b", 0, 1, 0),
    }
    await work.claim(limit=2)
    assert [item["id"] for item in (await get(ann, "/v1/stats/active"))["items"]] == [own]
    assert [item["id"] for item in (await get(ann, "/v1/stats/slow"))["items"]] == [own]
    for job in list(work.attempts):
        await work.finish(job)
    assert [row["ended"] for row in (await get(ann, "/v1/stats/errors"))["items"]] == [1]


async def test_stats_from_python(queue_app: Fenceline, work: Work) -> None:
    jobs = await fill(work)
    backlog = await queue_app.stats.backlog("acme")
    assert (backlog.items[0].queued, backlog.is_complete) == (3, True)
    active = await queue_app.stats.active("acme", labels={"project": "x"}, phase="load")
    assert [job.id for job in active.items] == [jobs["acme x"]]
    assert active.items[0].claimed_at.utcoffset() is not None
    assert [rate.error_rate for rate in (await queue_app.stats.errors("acme")).items] == [0.4, 0]
    assert sum(span.ended for span in (await queue_app.stats.throughput()).items) == 12
    assert (await queue_app.stats.slow(kinds=["c"], limit=1)).items[0].kind == "c"


async def test_what_is_looked_at_is_bounded(work: Work) -> None:
    for _ in range(5):
        await work.enqueue()
    for most, complete in ((3, False), (10, True)):
        text = await work.connection.fetchval(
            "select (fenceline.stats_backlog(null, $1) ->> 'is_complete')::bool", most
        )
        assert text is complete
