"""Children and locks of a job over HTTP, and the filters that find them."""

from typing import Any

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.test_jobs import is_problem
from tests.server.test_lists import kinds
from tests.server.watching import Work
from tests.server.worker import Hand


async def enqueue(client: httpx.AsyncClient, kind: str = "a", **options: Any) -> str:
    made = await client.post("/v1/jobs", json={"kind": kind, **options})
    assert made.status_code == 202, made.text
    return str(made.json()["id"])


async def test_children_are_a_list_of_jobs(as_role: AsRole, hand: Hand) -> None:
    operator = await as_role("operator", tenant="acme")
    parent = await enqueue(operator)
    ((_, attempt_id),) = (await hand.claim()).items()
    add = "select fenceline.add_children(fenceline.parse_public_id($1), $2, $3, array['{}'::json])"
    for kind in ("b", "c", "d"):
        await hand.connection.execute(add, parent, attempt_id, kind)
    await hand.finish(parent, attempt_id)
    page = (await operator.get(f"/v1/jobs/{parent}/children", params={"limit": 2})).json()
    assert [job["kind"] for job in page["items"]] == ["d", "c"]
    assert {job["parent"] for job in page["items"]} == {parent}
    rest = await operator.get(f"/v1/jobs/{parent}/children", params={"cursor": page["next_cursor"]})
    assert [job["kind"] for job in rest.json()["items"]] == ["b"]
    assert await kinds(operator, ("parent", parent), ("kind", "c")) == ["c"]
    assert await kinds(operator, ("parent", "nonsense")) == []
    stranger = await as_role("operator", tenant="globex")
    assert is_problem(await stranger.get(f"/v1/jobs/{parent}/children"), 404, "not_found")
    assert await kinds(stranger, ("parent", parent)) == []


async def test_filters_by_who_group_key_worker_and_phase(as_role: AsRole, hand: Hand) -> None:
    operator = await as_role("operator", name="olga")
    producer = await as_role("producer", name="paul")
    await enqueue(operator, "a")
    await enqueue(producer, "b", key="k")
    await hand.run("succeeded")
    assert await kinds(operator, ("created_by", "paul")) == ["b"]
    assert await kinds(operator, ("key", "k")) == ["b"]
    name = await hand.connection.fetchval("select name from fenceline.worker")
    assert await kinds(operator, ("worker", name)) == ["a"]
    assert await kinds(operator, ("phase", "none")) == []
    assert await kinds(operator, ("group", "none")) == []
    # Who sees only their own asks for others in vain.
    assert await kinds(producer, ("created_by", "olga")) == []
    assert await kinds(producer, ("created_by", "paul")) == ["b"]


async def test_filter_by_a_text_in_the_error(as_role: AsRole, connect: Connect) -> None:
    work = await Work.start(await connect())
    found = []
    for message in ("Disk 7 is full", "no route to host", "50% of it"):
        job = await work.enqueue("a")
        await work.claim()
        await work.finish(job, "failed_for_good", error={"type": "OSError", "message": message})
        found.append(job)
    client = await as_role("operator")
    for query, wanted in (
        ("error=disk", found[:1]), ("error=OSERROR", found[::-1]), ("error=%25", found[2:]), ("error=nothing", []),
        ("error=route&status=failed", found[1:2]), ("error=route&kind=b", []),
    ):  # fmt: skip
        assert [job["id"] for job in (await client.get(f"/v1/jobs?{query}")).json()["items"]] == wanted, query


async def test_locks_of_a_job_and_of_all(as_role: AsRole, hand: Hand) -> None:
    operator = await as_role("operator", tenant="acme")
    job = await enqueue(operator, resource_lock="table")
    (lock,) = (await operator.get(f"/v1/jobs/{job}/locks")).json()["items"]
    assert (lock["what"], lock["name"], lock["job"], lock["held"]) == ("resource_lock", "table", job, True)
    assert (await operator.get("/v1/locks")).json()["items"] == [lock]
    stranger = await as_role("operator", tenant="globex")
    assert is_problem(await stranger.get(f"/v1/jobs/{job}/locks"), 404, "not_found")
    assert (await stranger.get("/v1/locks")).json()["items"] == []


async def test_a_bulk_retry_of_many_pages_keeps_the_order(
    as_role: AsRole, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a load may be older than the load's newest retry, and far from it."""
    monkeypatch.setattr("fenceline.server.bulk.PAGE", 1)
    operator = await as_role("operator")
    load = await enqueue(operator, "load")
    await enqueue(operator, "report", after={"jobs": [load], "policy": "always"})
    await hand.run("failed_for_good")
    await hand.run("failed_for_good")
    await operator.post(f"/v1/jobs/{load}/retry")
    await hand.run("failed_for_good")
    body = {"action": "retry", "filter": {"status": "failed", "kind": ["load", "report"]}}
    preview = await operator.post("/v1/jobs/bulk", json={**body, "dry_run": True})
    answer = await operator.post("/v1/jobs/bulk", json=body)
    assert preview.json()["changed"] == answer.json()["changed"] == 3
    *_, newest_load, report = await hand.connection.fetch("select kind, id, after from fenceline.job order by id")
    assert (newest_load["kind"], report["kind"]) == ("load", "report")
    assert report["after"] == [newest_load["id"]]


async def test_bulk_verbs_take_the_same_filters(as_role: AsRole, hand: Hand) -> None:
    operator = await as_role("operator", name="olga")
    await enqueue(operator, "a")
    await enqueue(operator, "b", key="k")
    await enqueue(operator, "c")
    await hand.claim()
    name = await hand.connection.fetchval("select name from fenceline.worker")
    for filters, matched in (
        ({"key": "k"}, 1),
        ({"worker": name}, 1),
        ({"created_by": "olga"}, 3),
        ({"parent": "nonsense"}, 0),
        ({"group": "none"}, 0),
        ({"phase": "none"}, 0),
        ({"error": "none"}, 0),
        ({"key": "k", "kind": "a"}, 0),
    ):
        body = {"action": "cancel", "filter": filters, "dry_run": True}
        answer = await operator.post("/v1/jobs/bulk", json=body)
        assert (answer.status_code, answer.json().get("matched")) == (200, matched), filters
