"""Schedules over HTTP: the verbs, and whose they are."""

from typing import Any

import httpx
import pytest
from tests.server.conftest import AsRole

DAILY = {"name": "report", "kind": "report", "cron": "0 3 * * *", "timezone": "Europe/Berlin"}


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


async def test_a_schedule_from_its_making_to_its_end(as_role: AsRole) -> None:
    operator = await as_role("operator", name="ann")
    made = await operator.post("/v1/schedules", json={**DAILY, "args": {"a": 1}, "options": {"priority": 5}})
    assert made.status_code == 201, made.text
    assert made.headers["location"] == "/v1/schedules/report"
    schedule = made.json()
    assert (schedule["cron"], schedule["timezone"], schedule["args"], schedule["options"]["priority"]) == (
        "0 3 * * *", "Europe/Berlin", {"a": 1}, 5,
    )  # fmt: skip
    assert (schedule["changed_by"], schedule["source"], schedule["paused"]) == ("ann", "operator", False)
    assert code(await operator.post("/v1/schedules", json=DAILY)) == (409, "conflict")
    changed = await operator.patch(
        "/v1/schedules/report",
        json={"every": 60, "paused": True, "windows": [{"days": "mon-fri", "from": "22:00", "to": "04:00"}]},
    )
    assert changed.status_code == 200, changed.text
    assert (changed.json()["cron"], changed.json()["every"], changed.json()["paused"]) == (None, 60, True)
    assert changed.json()["options"]["priority"] == 5
    assert (await operator.get("/v1/schedules")).json()["items"] == [
        (await operator.get("/v1/schedules/report")).json()
    ]
    run = await operator.post("/v1/schedules/report/run")
    assert run.status_code == 202, run.text
    assert (run.json()["kind"], run.json()["args"], run.json()["priority"]) == ("report", {"a": 1}, 5)
    assert (await operator.get("/v1/schedules/report/ticks")).json() == {"items": [], "next_cursor": None}
    assert (await operator.delete("/v1/schedules/report")).status_code == 204
    assert code(await operator.get("/v1/schedules/report")) == (404, "not_found")
    actions = [event["action"] for event in (await operator.get("/v1/admin/audit?subject=report")).json()["items"]]
    assert actions == ["schedule.delete", "schedule.run", "schedule.change", "schedule.create"]


async def test_a_schedule_belongs_to_the_tenant_of_its_jobs_and_stays_there(as_role: AsRole) -> None:
    acme, other = await as_role("operator", tenant="acme"), await as_role("operator", tenant="other")
    assert (await acme.post("/v1/schedules", json=DAILY)).json()["tenant"] == "acme"
    assert (await other.get("/v1/schedules")).json()["items"] == []
    for response in (
        await other.get("/v1/schedules/report"),
        await other.patch("/v1/schedules/report", json={"paused": True}),
        await other.post("/v1/schedules/report/run"),
        await other.get("/v1/schedules/report/ticks"),
        await other.delete("/v1/schedules/report"),
    ):
        assert code(response) == (404, "not_found")
    admin = await as_role("platform_admin")
    for client, options in ((acme, {"priority": 1}), (acme, None), (admin, {"priority": 2})):
        changed = await client.patch("/v1/schedules/report", json={"options": options})
        assert changed.json()["tenant"] == "acme", changed.text
    assert (await acme.post("/v1/schedules/report/run")).json()["tenant"] == "acme"


@pytest.mark.parametrize(
    "wrong",
    [
        {"cron": "not cron"}, {"cron": "0 3 * * *", "every": 60}, {"cron": None}, {"timezone": "Mars/Olympus"},
        {"windows": [{"from": "25:00", "to": "04:00"}]}, {"misfire_limit": 0}, {"options": {"tenant": "acme"}},
        {"options": {"lane": "Not A Lane"}}, {"kind": None}, {"name": "Not A Name"}, {"every": 0, "cron": None},
    ],
)  # fmt: skip
async def test_settings_are_checked(as_role: AsRole, wrong: dict[str, Any]) -> None:
    operator = await as_role("operator")
    response = await operator.post("/v1/schedules", json={**DAILY, **wrong})
    assert code(response) == (422, "invalid"), response.text
    assert (await operator.get("/v1/schedules")).json()["items"] == []
