import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg
import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.runner_calls import claim, claim_one, register
from tests.server.test_jobs import JOB_FIELDS, is_problem
from tests.support.figures import Figures
from tests.support.patience import eventually, seconds_left

from fenceline import Fenceline, Job
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.runtime import listener
from fenceline.server import runners
from fenceline.server.lane_wakeups import CHANNEL, ReadyLanes


async def enqueue(app: Fenceline, count: int, **options: Any) -> list[Job[Any]]:
    return [await app.enqueue("work", **options) for _ in range(count)]


@pytest.fixture
async def runner(as_role: AsRole) -> httpx.AsyncClient:
    return await as_role("runner")


async def test_a_runner_claims_starts_logs_and_finishes(runner: httpx.AsyncClient, queue_app: Fenceline) -> None:
    job = await queue_app.enqueue("work", {"n": 1}, labels={"a": "b"})
    [attempt] = await claim(runner, await register(runner, name="r1", lanes=["default"]), count=5)
    assert attempt.keys() >= {"job", "attempt_id", "token", "number", "lease_seconds"}
    assert attempt["job"].keys() == JOB_FIELDS
    assert (attempt["job"]["id"], attempt["job"]["args"], attempt["job"]["status"]) == (job.id, {"n": 1}, "claimed")
    assert (attempt["number"], attempt["lease_seconds"], attempt["job"]["worker"]) == (1, 60.0, "r1")
    path, headers = f"/v1/jobs/{job.id}", {"Fenceline-Attempt": attempt["attempt_id"]}
    started = await runner.put(f"{path}/status", json={"status": "running"}, headers=headers)
    assert (started.status_code, started.json()["status"]) == (200, "running")
    lines = {"lines": [{"message": "a", "at": "2026-01-31T12:00:00Z"}, {"message": "b", "fields": {"n": 1}}]}
    assert (await runner.post(f"{path}/logs", json=lines, headers=headers)).status_code == 204
    end = {"status": "succeeded", "result": {"rows": 3}, "metadata": {"host": "h"}}
    done = await runner.put(f"{path}/status", json=end, headers=headers)
    assert (done.status_code, done.json()["status"], done.json()["result"]) == (200, "succeeded", {"rows": 3})
    assert [line.message for line in await job.logs()] == ["a", "b"]


async def test_the_lease_of_a_runner_is_what_its_lanes_call_silence(runner: httpx.AsyncClient, as_role: AsRole) -> None:
    admin = await as_role("platform_admin")
    for lane, seconds in (("near", 20), ("far", 300), ("usual", None)):
        await admin.post(f"/v1/admin/workers/lanes/{lane}", json={"offline_timeout_seconds": seconds})

    async def lease(**body: Any) -> float:
        return float((await runner.post("/v1/runners", json={"name": "r", **body})).json()["lease_seconds"])

    served = (["near"], ["far"], ["far", "near"], ["usual"], ["far", "usual"])
    assert [await lease(lanes=lanes) for lanes in served] == [20, 300, 20, 60, 60]
    assert (await lease(), await lease(lanes=["near"], lease_seconds=7), await lease(lanes=["unknown"])) == (20, 7, 60)


async def test_the_claim_shows_the_job_as_a_look_at_it_does(as_role: AsRole, queue_app: Fenceline) -> None:
    admin = await as_role("platform_admin")
    await queue_app.enqueue("work", {"n": 1}, labels={"a": "b"}, priority=3)
    [attempt] = await claim(admin, await register(admin))
    assert (await admin.get(f"/v1/jobs/{attempt['job']['id']}")).json() == attempt["job"]


@pytest.mark.parametrize(
    "said, status",
    [
        ({"status": "succeeded", "result": 1}, "succeeded"),
        ({"status": "succeeded_with_errors", "result": 1, "errors": ["x"]}, "succeeded_with_errors"),
        ({"status": "failed", "error": "no"}, "scheduled"),
        ({"status": "failed", "error": {"code": "x", "message": "no"}, "retry": False}, "failed"),
        ({"status": "failed", "delay_seconds": 0.0}, "queued"),
        ({"status": "cancelled", "error": {"code": "cancelled", "message": "no"}}, "cancelled"),
        ({"status": "snoozed", "delay_seconds": 60}, "scheduled"),
        ({"status": "released"}, "queued"),
        ({"status": "crashed", "error": {"signal": 9}}, "queued"),
    ],
)
async def test_every_end_and_its_replay(
    runner: httpx.AsyncClient, queue_app: Fenceline, said: dict[str, object], status: str
) -> None:
    await queue_app.enqueue("work")
    attempt = await claim_one(runner)
    first = await attempt.put("status", said)
    assert (first.status_code, first.json()["status"]) == (200, status), first.text
    again = await attempt.put("status", said)
    assert (again.status_code, again.json()) == (200, first.json())
    for other in ("succeeded", "failed", "released"):
        if other != said["status"]:
            assert is_problem(await attempt.finish(other), 409, "stale_attempt")
    if "result" in said:
        assert is_problem(await attempt.put("status", {**said, "result": 2}), 409, "stale_attempt")
    assert is_problem(await attempt.put("status", {"status": "running"}), 409, "stale_attempt")


async def test_late_writes_stand_in_the_timeline(
    runner: httpx.AsyncClient, as_role: AsRole, queue_app: Fenceline
) -> None:
    job = await queue_app.enqueue("work")
    attempt = await claim_one(runner)
    await job.cancel(force=True)
    assert is_problem(await attempt.finish(), 409, "stale_attempt")
    assert is_problem(await attempt.put("checkpoint", {"state": 1}), 409, "stale_attempt")
    assert is_problem(await attempt.put("progress", {"done": 1}), 409, "stale_attempt")
    lines = {"lines": [{"message": "late"}]}
    assert is_problem(await attempt.post("logs", lines), 409, "stale_attempt")
    named = {"job": job.id, "attempt_id": attempt.attempt_id}
    for path, said in (("finish", {"status": "succeeded"}), ("report", lines)):
        answer = await runner.post(f"/v1/jobs/{path}", json={"attempts": [{**named, **said}]})
        assert answer.json()["attempts"][0]["verdict"] == "stale"
    operator = await as_role("operator")
    events = (await operator.get(f"/v1/jobs/{job.id}/events")).json()["items"]
    [refused] = [event for event in events if event["event"] == "attempt.refused"]
    assert refused["details"]["writes"] == {"finish": 2, "save_checkpoint": 1, "set_progress": 1, "log": 2}


async def test_a_claim_sent_again_gets_the_same_attempts(runner: httpx.AsyncClient, queue_app: Fenceline) -> None:
    for lane in ("default", "interactive"):
        await enqueue(queue_app, 2, lane=lane)
    runner_id = await register(runner)
    first = await claim(runner, runner_id, count=10, request_id="one")
    assert await claim(runner, runner_id, count=10, request_id="one") == first
    assert [attempt["job"]["lane"] for attempt in first] == ["default", "default", "interactive", "interactive"]
    await enqueue(queue_app, 1, lane="maintenance")
    await enqueue(queue_app, 1, lane="default")
    await queue_app.lanes.drain("interactive")
    assert await claim(runner, runner_id, count=10, request_id="one") == first
    second = await claim(runner, runner_id, count=10, request_id="two")
    assert [attempt["job"]["lane"] for attempt in second] == ["default", "maintenance"]
    assert await claim(runner, runner_id, count=10, request_id="one") == first
    # Another runner's request of the same name is another request.
    assert await claim(runner, await register(runner), count=10, request_id="one") == []


async def test_a_claim_takes_only_what_it_asks_for(runner: httpx.AsyncClient, queue_app: Fenceline) -> None:
    for kind, lane in (("a", "default"), ("b", "default"), ("c", "interactive")):
        await queue_app.enqueue(kind, lane=lane)
    only_b = await register(runner, kinds=["b"])
    assert [attempt["job"]["kind"] for attempt in await claim(runner, only_b, count=9)] == ["b"]
    assert await claim(runner, only_b, count=9) == []
    interactive = await register(runner, lanes=["interactive"])
    assert [attempt["job"]["kind"] for attempt in await claim(runner, interactive, count=9)] == ["c"]
    everything = await register(runner)
    assert await claim(runner, everything, lanes=["interactive", "none"]) == []
    assert await claim(runner, everything, kinds=["x"]) == []
    assert [attempt["job"]["kind"] for attempt in await claim(runner, everything)] == ["a"]


@pytest.mark.parametrize("lane", [{"fair": False}, {"fair": True}])
async def test_a_runner_gets_jobs_of_its_tenant_only(
    as_role: AsRole, queue_app: Fenceline, lane: dict[str, Any]
) -> None:
    await queue_app.lanes.set("default", **lane)
    for tenant in ("acme", "other", "acme", "other"):
        await queue_app.enqueue("work", tenant=tenant)
    acme, admin = await as_role("runner", tenant="acme"), await as_role("platform_admin")
    attempts = await claim(acme, await register(acme), count=10)
    assert [attempt["job"]["tenant"] for attempt in attempts] == ["acme", "acme"]
    attempts = await claim(admin, await register(admin), count=10)
    assert [attempt["job"]["tenant"] for attempt in attempts] == ["other", "other"]


async def test_slots_of_a_lane_hold_for_runners_too(runner: httpx.AsyncClient, queue_app: Fenceline) -> None:
    await enqueue(queue_app, 5, lane="interactive")
    runner_id = await register(runner)
    first = await claim(runner, runner_id, count=10)
    assert len(first) == 2
    assert await claim(runner, runner_id, count=10) == []


async def wake_a_claim(runner: httpx.AsyncClient, app: Fenceline, api: FastAPI) -> float:
    """The seconds from the enqueue to the answer."""
    runner_id = await register(runner, lease_seconds=3600)  # it sends no heartbeats meanwhile
    waiting = asyncio.create_task(claim(runner, runner_id, wait=60))
    try:
        await eventually(has_waiters(api), "the claim waits")
        await app.enqueue("work")
        enqueued = time.monotonic()
        assert len(await waiting) == 1
        return time.monotonic() - enqueued
    finally:
        waiting.cancel()


def has_waiters(api: FastAPI) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return bool(api.state.server.ready._everybody)

    return look


@pytest.fixture
def patient_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the server starts: what is heard late is no reason to connect anew, and to miss what comes meanwhile."""
    monkeypatch.setattr(listener, "HEARD_WITHIN_SECONDS", 3600.0)


async def is_listening(ready: ReadyLanes, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Return once a notification wakes who waits at this server."""
    waiting = asyncio.create_task(ready.wait(["probe"], seconds_left()))

    async def is_woken() -> bool:
        await connection.execute("select pg_notify($1, 'probe')", CHANNEL)
        return waiting.done()

    try:
        await eventually(is_woken, "the server hears notifications")
    finally:
        waiting.cancel()


@pytest.mark.usefixtures("patient_listener")
async def test_a_claim_waits_for_a_job_and_is_woken(
    runner: httpx.AsyncClient,
    queue_app: Fenceline,
    api: FastAPI,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner_id = await register(runner)
    started = time.monotonic()
    assert await claim(runner, runner_id, wait=0.3) == []
    assert time.monotonic() - started >= 0.3
    ready, connection = api.state.server.ready, await connect()
    await is_listening(ready, connection)
    heard: list[set[str]] = []
    wait = ready.wait

    async def noted(lanes: Sequence[str], seconds: float) -> set[str]:
        heard.append(await wait(lanes, seconds))
        return heard[-1]

    monkeypatch.setattr(ready, "wait", noted)
    monkeypatch.setattr(runners, "POLL_SECONDS", (3600.0,))  # so that it finds nothing before the end of its time
    await wake_a_claim(runner, queue_app, api)
    assert {"default"} in heard


@pytest.mark.timing
async def test_a_claim_is_woken_soon(
    runner: httpx.AsyncClient, queue_app: Fenceline, api: FastAPI, figures: Figures
) -> None:
    figures.at_most("a waiting claim is answered after", await wake_a_claim(runner, queue_app, api), 5)


async def test_a_claim_that_awaits_its_turn_ends_with_the_server(
    runner: httpx.AsyncClient, as_role: AsRole, api: FastAPI, queue_app: Fenceline
) -> None:
    admin = await as_role("platform_admin")
    await admin.post("/v1/admin/workers/lanes/paced", json={"rate_per_second": 0.001, "burst": 1})
    await enqueue(queue_app, 2, lane="paced")
    runner_id = await register(runner, lanes=["paced"])
    assert len(await claim(runner, runner_id)) == 1
    waiting = asyncio.create_task(claim(runner, runner_id, wait=60))
    try:
        # Its only lane has a job: it knows by then when that may start.
        await eventually(has_waiters(api), "the claim awaits its turn")
        api.state.server.ready.close()
        assert await waiting == []
    finally:
        waiting.cancel()
    # Nor is anybody kept waiting who comes now.
    assert await claim(runner, runner_id, wait=60) == []


async def test_steps_that_no_answer_has_room_for_are_refused(
    runner: httpx.AsyncClient, queue_app: Fenceline, connect: Connect
) -> None:
    """Not with a 500, which a runner takes for an outage, and asks again for ever."""
    await queue_app.enqueue("work")
    attempt = await claim_one(runner)
    await (await connect()).execute(
        """insert into fenceline.step (job_id, name, position, status, result, token, ended_at)
        select job_id, n::text, n, 'done', to_jsonb(repeat('a', 1000000)), token, now()
        from fenceline.running, generate_series(1, 280) n"""
    )
    answer = await runner.get(f"/v1/jobs/{attempt.job}/start", headers=attempt.headers)
    assert is_problem(answer, 413, "too_large")


async def test_heartbeats_tell_what_became_of_attempts(runner: httpx.AsyncClient, queue_app: Fenceline) -> None:
    jobs = await enqueue(queue_app, 3)
    runner_id = await register(runner)
    attempts = {a["job"]["id"]: a["attempt_id"] for a in await claim(runner, runner_id, count=3)}
    held = list(attempts.values())
    path = f"/v1/runners/{runner_id}/heartbeat"
    quiet = {"cancel": [], "grace": {}, "stale": [], "lease_seconds": 60.0}
    assert (await runner.post(path, json={"attempts": held})).json() == quiet
    await jobs[0].cancel()
    await jobs[1].cancel(force=True)
    said = (await runner.post(path, json={"attempts": held})).json()
    assert said["cancel"] == [attempts[jobs[0].id]]
    assert 0 < said["grace"][attempts[jobs[0].id]] <= 30
    assert said["stale"] == [attempts[jobs[1].id]]
    # What the runner does not know of goes back; without a list, only the lease is renewed.
    assert (await runner.post(path)).status_code == 200
    assert await jobs[2].status() == "claimed"
    await runner.post(path, json={"attempts": [attempts[jobs[0].id]]})
    assert await jobs[2].status() == "queued"


async def test_a_silent_runner_is_offline_and_loses_its_jobs(
    as_role: AsRole, queue_app: Fenceline, connect: Connect
) -> None:
    runner, operator = await as_role("runner"), await as_role("operator")
    job = await queue_app.enqueue("work")
    runner_id = await register(runner, name="quiet")
    attempt = await claim_one(runner, runner_id)

    async def shown() -> list[tuple[str, str]]:
        runners = (await operator.get("/v1/admin/workers/status")).json()["runners"]
        return [(runner["name"], runner["status"]) for runner in runners]

    assert await shown() == [("quiet", "online")]
    connection = await connect()
    await connection.execute(
        "update fenceline.worker set lease_until = now() - interval '1 s' where id = $1", runner_id
    )
    assert await shown() == [("quiet", "offline")]
    await app_parts(queue_app).database().call(calls.upkeep.maintain(interval_seconds=0))
    assert await job.status() == "queued"
    assert is_problem(await attempt.finish(), 409, "stale_attempt")
    for path in (f"/v1/runners/{runner_id}/heartbeat", f"/v1/runners/{runner_id}/stop"):
        assert is_problem(await runner.post(path), 404, "not_found")
    again = await runner.post("/v1/jobs/claim", json={"runner_id": runner_id})
    assert is_problem(again, 404, "not_found")


@pytest.mark.parametrize("promises, left", [(True, "queued"), (False, "failed")])
async def test_a_last_attempt_whose_start_was_not_told_is_refunded_to_who_tells(
    runner: httpx.AsyncClient,
    queue_app: Fenceline,
    connect: Connect,
    promises: bool,  # noqa: FBT001 - drawn
    left: str,
) -> None:
    job = await queue_app.enqueue("work", max_attempts=1)
    await claim_one(runner, await register(runner, tells_starts=promises))
    await (await connect()).execute("update fenceline.worker set lease_until = now() - interval '1 s'")
    await app_parts(queue_app).database().call(calls.upkeep.maintain(interval_seconds=0))
    assert await job.status() == left


async def test_a_blocked_loop_is_shown_until_it_turns_again(as_role: AsRole, queue_app: Fenceline) -> None:
    runner = await as_role("runner")
    job = await queue_app.enqueue("work")
    runner_id = await register(runner)
    await claim_one(runner, runner_id)

    async def beat(body: Any) -> None:
        response = await runner.post(f"/v1/runners/{runner_id}/heartbeat", json=body)
        assert response.status_code == 200, response.text

    async def shown() -> tuple[bool, str | None]:
        [worker] = await queue_app.system.workers()
        return (worker.blocked_seconds or 0) >= 7, worker.blocked_by

    await beat({"blocked": {"seconds": 7, "job": job.id}})
    assert await shown() == (True, job.id)
    await beat({"attempts": []})  # the runner's own, which knows nothing of it
    assert await shown() == (True, job.id)
    await beat({})
    assert await shown() == (False, None)


async def test_who_signs_off_gives_everything_back(as_role: AsRole, queue_app: Fenceline) -> None:
    runner, operator = await as_role("runner"), await as_role("operator")
    plain, fails = await queue_app.enqueue("plain"), await queue_app.enqueue("fails")
    runner_id = await register(runner)
    await claim(runner, runner_id, count=2)
    ended = await runner.post(f"/v1/runners/{runner_id}/stop", json={"fail_kinds": ["fails"]})
    assert ended.json() == {"ended": 2}
    assert (await plain.status(), await fails.status()) == ("queued", "failed")
    assert (await operator.get("/v1/admin/workers/status")).json()["runners"] == []


async def test_jobs_that_shared_a_crash_run_alone(runner: httpx.AsyncClient, queue_app: Fenceline) -> None:
    await enqueue(queue_app, 2)
    runner_id = await register(runner)
    held = [attempt["attempt_id"] for attempt in await claim(runner, runner_id, count=2)]
    crash = await runner.post(f"/v1/runners/{runner_id}/crash", json={"suspects": held, "error": {"exit_code": -9}})
    assert crash.json() == {"ended": 2}
    runner_id = await register(runner)
    answer = (await runner.post("/v1/jobs/claim", json={"runner_id": runner_id, "count": 5})).json()
    assert (answer["attempts"], answer["suspects"]) == ([], True)
    [alone] = await claim(runner, runner_id, count=1)
    assert alone["alone"] is True
    assert await claim(runner, runner_id, count=1) == []  # not beside the other


async def test_suspects_go_to_runners_with_processes_for_them(runner: httpx.AsyncClient, queue_app: Fenceline) -> None:
    await enqueue(queue_app, 3)
    runner_id = await register(runner)
    await claim(runner, runner_id, count=3)
    await runner.post(f"/v1/runners/{runner_id}/crash", json={})
    await enqueue(queue_app, 2)
    runner_id = await register(runner)
    assert [attempt["alone"] for attempt in await claim(runner, runner_id, count=2)] == [False, False]
    apart = await claim(runner, runner_id, count=2, apart=True, request_id="r")
    assert [attempt["alone"] for attempt in apart] == [True, True], "whatever else it runs"
    assert await claim(runner, runner_id, count=2, apart=True, request_id="r") == apart
    assert len(await claim(runner, runner_id, count=2, apart=True)) == 1
    assert await claim(runner, runner_id, count=2, apart=True, wait=5) == []


async def test_runners_of_a_tenant_are_shown_to_it_alone(as_role: AsRole) -> None:
    for tenant in ("acme", "other"):
        await register(await as_role("runner", tenant=tenant), name=tenant)
    await register(await as_role("platform_admin"), name="all")
    operator = await as_role("operator", tenant="acme")
    runners = (await operator.get("/v1/admin/workers/status")).json()["runners"]
    assert [runner["name"] for runner in runners] == ["acme", "all"]


async def test_many_ends_at_once_are_decided_one_by_one(as_role: AsRole, queue_app: Fenceline) -> None:
    await enqueue(queue_app, 5)
    mine, other = await as_role("runner"), await as_role("runner")
    attempts = await claim(mine, await register(mine), count=4)
    [foreign] = await claim(other, await register(other))
    items = [{"job": a["job"]["id"], "attempt_id": a["attempt_id"], "status": "succeeded"} for a in attempts]
    items[1] |= {"status": "failed", "error": "no", "retry": False}
    items[3] |= {"attempt_id": foreign["attempt_id"]}
    items += [
        {"job": foreign["job"]["id"], "attempt_id": foreign["attempt_id"], "status": "succeeded"},
        {"job": "nonsense", "attempt_id": foreign["attempt_id"], "status": "succeeded"},
    ]
    expected = ["accepted", "accepted", "accepted", "stale", "forbidden", "not_found"]
    for verdicts in (expected, ["already"] * 3 + expected[3:]):
        response = await mine.post("/v1/jobs/finish", json={"attempts": items})
        assert response.status_code == 200, response.text
        assert [item["verdict"] for item in response.json()["attempts"]] == verdicts
    items[0] |= {"result": 7}
    response = await mine.post("/v1/jobs/finish", json={"attempts": items[:1]})
    assert response.json()["attempts"][0]["verdict"] == "stale"


async def test_a_client_that_guesses_from_ctx_guesses_right(as_role: AsRole, queue_app: Fenceline) -> None:
    admin = await as_role("platform_admin")
    job = await queue_app.enqueue("work")
    nulls = {"lanes": None, "count": None, "wait": None, "request_id": None}
    attempt = await claim_one(admin, **nulls)
    lines = {"lines": [{"message": "a", "level": None, "fields": None, "at": None}]}
    assert (await attempt.post("logs", lines)).status_code == 204
    assert [line.level for line in await job.logs()] == ["info"]
    assert (await attempt.put("phase", {"name": "inventory"})).status_code == 204
    assert (await attempt.put("items", {"start": ["a", "b", "c"]})).json()["in_progress"] == 3
    await attempt.put("items", {"complete": ["a"]})
    await attempt.put("items", {"skip": ["b"], "reason": "is empty"})
    counts = await attempt.put("items", {"fail": ["c"], "error": "no"})
    assert counts.json() == {"in_progress": 0, "completed": 1, "skipped": 1, "failed": 1}
    for bad in ({"to": "completed"}, {"items": ["a"]}, {"start": ["a"], "fail": ["b"]}, {}):
        assert is_problem(await attempt.put("items", bad), 422, "invalid")
    assert (await attempt.put("checkpoint", {"checkpoint": {"row": 1}})).status_code == 204
    start = await admin.get(f"/v1/jobs/{job.id}/start", headers=attempt.headers)
    assert start.json()["checkpoint"] == {"row": 1}
    assert (await attempt.put("steps/load", {"error": "no"})).status_code == 204
    first, again = [await attempt.post("locks", {"namespace": "edition", "id": 42}) for _ in range(2)]
    assert first.json()["held"] is True
    assert again.json() == first.json()
    other = await attempt.post("locks", {"namespace": "edition", "name": "42", "owner": attempt.attempt_id})
    assert other.json() == {"held": False, "owner": attempt.attempt_id}
    released = await admin.delete(f"/v1/jobs/{job.id}/locks/{first.json()['owner']}", headers=attempt.headers)
    assert released.status_code == 204
    body = {"kind": "child", "args": {"page": 1}, "priority": 3, "run_at": "2090-01-01T00:00:00Z"}
    [child] = (await attempt.post("children", body)).json()["ids"]
    assert is_problem(await attempt.post("children", {"kind": "a", "args": {}, "many": [{}]}), 422, "invalid")
    done = await attempt.put("status", {"status": "succeeded", "errors": None, "metadata": None, "retry": None})
    assert done.json()["status"] == "succeeded"
    made = (await admin.get(f"/v1/jobs/{child}")).json()
    assert (made["args"], made["priority"], made["status"], made["parent"]) == ({"page": 1}, 3, "scheduled", job.id)
