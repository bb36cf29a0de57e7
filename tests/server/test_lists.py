"""Lists: filters, pages, cursors."""

from typing import Any

import httpx
import pytest
from tests.server.conftest import AsRole
from tests.server.test_jobs import is_problem
from tests.server.worker import Hand


@pytest.fixture
async def operator(as_role: AsRole) -> httpx.AsyncClient:
    return await as_role("operator")


async def kinds(client: httpx.AsyncClient, *query: tuple[str, str]) -> list[str]:
    response = await client.get("/v1/jobs", params=list(query))
    assert response.status_code == 200, response.text
    return [job["kind"] for job in response.json()["items"]]


async def test_values_of_a_filter_are_alternatives_and_labels_add_up(operator: httpx.AsyncClient, hand: Hand) -> None:
    jobs: dict[str, dict[str, Any]] = {
        "a": {"priority": 9},
        "b": {"lane": "system", "labels": {"project": "x"}},
        "c": {"labels": {"project": "x", "build": "1:2"}},
        "d": {"needs_approval": True, "labels": {"project": "y"}},
    }
    for kind, options in jobs.items():
        assert (await operator.post("/v1/jobs", json={"kind": kind, **options})).status_code == 202
    await hand.run("failed_for_good")
    assert await kinds(operator) == ["d", "c", "b", "a"]
    assert await kinds(operator, ("kind", "a"), ("kind", "c")) == ["c", "a"]
    assert await kinds(operator, ("status", "failed"), ("status", "awaiting_approval")) == ["d", "a"]
    assert await kinds(operator, ("lane", "system")) == ["b"]
    assert await kinds(operator, ("label", "project:x")) == ["c", "b"]
    assert await kinds(operator, ("label", "project:x"), ("label", "build:1:2")) == ["c"]
    assert await kinds(operator, ("label", "project:x"), ("status", "queued"), ("kind", "b")) == ["b"]
    assert await kinds(operator, ("tenant", "default"), ("tenant", "other")) == ["d", "c", "b", "a"]
    assert await kinds(operator, ("tenant", "other")) == []
    made = [job["created_at"] for job in (await operator.get("/v1/jobs")).json()["items"]]
    assert await kinds(operator, ("created_after", "2100-01-01T00:00:00Z")) == []
    assert await kinds(operator, ("created_before", made[-1])) == []
    assert set(await kinds(operator, ("created_after", made[-1]))) == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    "query",
    [
        {"status": "nonsense"}, {"label": "nocolon"}, {"label": ":x"}, {"limit": "0"}, {"limit": "1001"},
        {"cursor": "0000-0000-0001-002"}, {"created_after": "yesterday"}, {"created_after": "2026-01-31T12:00:00"},
        {"kind": "a\0"}, {"created_before": "99999-01-01T00:00:00Z"}, {"label": "a:\0"},
    ],
)  # fmt: skip
async def test_bad_filters(operator: httpx.AsyncClient, query: dict[str, str]) -> None:
    is_problem(await operator.get("/v1/jobs", params=query), 422, "invalid")


async def test_a_cursor_does_not_move_when_jobs_come_and_go(operator: httpx.AsyncClient, hand: Hand) -> None:
    for number in range(7):
        await operator.post("/v1/jobs", json={"kind": f"k{number}"})
    seen: list[str] = []
    cursor = None
    while True:
        params = {"limit": "3"} if cursor is None else {"limit": "3", "cursor": cursor}
        page = (await operator.get("/v1/jobs", params=params)).json()
        seen += [job["kind"] for job in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        await operator.post("/v1/jobs", json={"kind": "new"})
        await hand.run()  # the status of one changes meanwhile
    assert seen == [f"k{number}" for number in reversed(range(7))]
