"""All ten kinds, from what starts them to what is left of them."""

import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import yaml
from fastapi.testclient import TestClient

from agent_gateway import jobs
from agent_gateway.jobs import analytics
from fenceline import Handler, JobFailed
from fenceline.testing import TestedApp

if TYPE_CHECKING:
    from examples.conftest import Programs

pytestmark = pytest.mark.fenceline(app="agent_gateway.jobs:app")

SLACK, GITHUB = b"slack-signing-secret", b"github-webhook-secret"


def rows(dsn: str, query: str) -> list[Any]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchall()


def slack_signed(body: bytes, *, ago: int = 0) -> dict[str, str]:
    timestamp = str(int(time.time()) - ago)
    signed = hmac.new(SLACK, b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256)
    return {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": f"v0={signed.hexdigest()}",
    }


def github_signed(body: bytes, delivery: str) -> dict[str, str]:
    signed = hmac.new(GITHUB, body, hashlib.sha256)
    return {
        "Content-Type": "application/json",
        "X-Hub-Signature-256": f"sha256={signed.hexdigest()}",
        "X-GitHub-Delivery": delivery,
    }


def test_a_message_is_answered_from_memory_and_written_down(
    client: TestClient, fenceline_app: TestedApp, fenceline_dsn: str
) -> None:
    """agent-turn, analytics-write, embed-memories."""
    client.post("/v1/memories", json={"text": "the coffee machine is on the third floor"}).raise_for_status()
    client.post("/v1/memories", json={"text": "ships sail at noon"}).raise_for_status()
    embedding = fenceline_app.sync.enqueue("embed-memories")
    fenceline_app.sync.drain()
    assert embedding.result() == 2
    said = {"user_id": "ann", "session_id": "s1", "text": "where is the coffee machine", "message_id": "17"}
    first, again = (client.post("/v1/messages", json=said).json() for _ in range(2))
    assert (first["created"], again["created"], again["job_id"]) == (True, False, first["job_id"])
    fenceline_app.sync.drain()
    assert client.post("/v1/messages", json=said).json() == again, "also after the turn"
    fenceline_app.sync.drain()
    [turn] = client.get("/v1/sessions/s1").json()
    assert turn["reply"] == "I remember: the coffee machine is on the third floor"
    assert rows(fenceline_dsn, "select session_id, tool from gateway.tool_event") == [("s1", "recall")]


def test_slack_and_github_make_turns_and_each_message_one(
    client: TestClient, fenceline_app: TestedApp, fenceline_dsn: str
) -> None:
    """trigger-fire: signed requests only; a message that is delivered again, soon or later, makes no second turn."""
    event = {"type": "event_callback", "event": {"text": "hello", "user": "U1", "channel": "C1", "ts": "1700.1"}}
    body = json.dumps(event).encode()
    assert client.post("/v1/triggers/slack", content=body, headers=slack_signed(body)).status_code == 200
    assert client.post("/v1/triggers/slack", content=body, headers=slack_signed(body, ago=100)).status_code == 200
    forged = {**slack_signed(body, ago=2), "X-Slack-Signature": "v0=" + "0" * 64}
    assert client.post("/v1/triggers/slack", content=body, headers=forged).status_code == 401
    comment = {"comment": {"body": "please review"}, "sender": {"login": "bob"}, "repository": {"full_name": "o/r"}}
    body = json.dumps(comment).encode()
    assert client.post("/v1/triggers/github", content=body, headers=github_signed(body, "d1")).status_code == 202
    assert client.post("/v1/triggers/github", content=body, headers=github_signed(body, "d1")).status_code == 409
    fenceline_app.sync.drain()
    body = json.dumps(event).encode()
    assert client.post("/v1/triggers/slack", content=body, headers=slack_signed(body, ago=-60)).status_code == 200
    fenceline_app.sync.drain()
    fired = fenceline_app.sync.jobs.list(kind="trigger-fire").items
    assert [job.status for job in fired] == ["succeeded"] * 4
    turns = rows(fenceline_dsn, "select channel, session_id, user_id, reply from gateway.message order by channel")
    assert turns == [("github", "o/r", "bob", "I heard: please review"), ("slack", "C1", "U1", "I heard: hello")]


def test_the_clock_makes_turns(fenceline_app: TestedApp, fenceline_dsn: str, programs: "Programs") -> None:
    """The schedules are those of the code: a worker tells of them."""
    schedules = fenceline_app.sync.schedules
    programs.start("fenceline", "worker", "agent_gateway.jobs:app")
    programs.until(lambda: len(schedules.list()) == 3, "the worker has told its schedules")
    assert {schedule.name for schedule in schedules.list()} == {"standup", "provider-refresh", "embed-memories"}
    schedules.run("standup")
    turns = fenceline_app.sync.jobs
    programs.until(lambda: turns.list(kind="agent-turn", status="succeeded").items, "a turn was made")
    said = rows(fenceline_dsn, "select channel, text from gateway.message")
    assert said == [("cron", "What is planned today?")]
    [fired] = fenceline_app.sync.assert_enqueued("trigger-fire", count=1)
    assert fired.created_by == "schedule:standup"


def test_a_goal_is_planned_worked_on_and_put_together(client: TestClient, fenceline_app: TestedApp) -> None:
    """orchestrator-plan, -subtask and -synthesize; what failed is seen by it, and in the list of failed jobs."""
    planned = client.post("/v1/orchestrate", json={"goal": "read; do the impossible; write"}).json()
    fenceline_app.sync.drain(raises=False)
    [last] = fenceline_app.sync.jobs.list(kind="orchestrator-synthesize").items
    assert last.result == {
        "goal": "read; do the impossible; write",
        "done": ["read: done", "write: done"],
        "failed": ["cannot be done: do the impossible"],
    }
    subtasks = fenceline_app.sync.jobs.handle(planned["job_id"]).children().items
    assert [child.kind for child in subtasks].count("orchestrator-subtask") == 3
    failed = client.get("/v1/jobs", params={"status": "failed", "limit": 20}).json()["items"]
    assert [(job["kind"], job["error"]["message"]) for job in failed] == [
        ("orchestrator-subtask", "cannot be done: do the impossible")
    ]


async def test_tool_events_are_written_in_few_calls(fenceline_app: TestedApp, fenceline_dsn: str) -> None:
    """analytics-write: 450 events in three calls; a bad one fails alone, after its three attempts."""
    events = [analytics.ToolEvent("s", "search", float(number)) for number in range(450)]
    events.insert(300, analytics.ToolEvent("s", "bad", -1.0))
    made = await analytics.analytics_write.enqueue_many(events)
    for _ in range(3):
        await fenceline_app.drain(raises=False)
        await fenceline_app.advance(hours=1)
    # Only ours: by the time of day, a trigger has fired meanwhile, and its turn has used a tool.
    [(count, different, transactions)] = rows(
        fenceline_dsn,
        "select count(*), count(distinct milliseconds), count(distinct xmin::text) from gateway.tool_event "
        "where session_id = 's'",
    )
    assert (count, different) == (450, 450)
    assert transactions <= 4
    record = await made[300].get()
    assert (record.status, record.attempt) == ("failed", 3)
    with pytest.raises(JobFailed, match="time does not run backwards"):
        await made[300].result()


async def test_providers_are_looked_at(
    fenceline_app: TestedApp, fenceline_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """provider-refresh: one that does not answer is an error among results."""
    monkeypatch.setenv("AGENTS", "http://127.0.0.1:9")
    job = await fenceline_app.enqueue("provider-refresh")
    await fenceline_app.drain()
    record = await job.get()
    assert record.status == "succeeded_with_errors"
    assert rows(fenceline_dsn, "select url, healthy from gateway.provider") == [("http://127.0.0.1:9", False)]


def test_the_ten_kinds_of_the_document_are_there() -> None:
    modules = [jobs.analytics, jobs.dispatch, jobs.memories, jobs.orchestrate, jobs.providers, jobs.turns]
    handlers = [value for module in modules for value in vars(module).values() if isinstance(value, Handler)]
    assert {handler.kind for handler in handlers} == {
        "agent-turn", "trigger-fire", "analytics-write", "provider-refresh", "orchestrator-plan",
        "orchestrator-subtask", "orchestrator-synthesize", "dispatch-execute", "dispatch-synthesize", "embed-memories",
    }  # fmt: skip


def test_replicas_scale_from_one_to_three() -> None:
    folder = Path(__file__).parents[1] / "deploy"
    [patch] = [
        item["patch"] for item in yaml.safe_load((folder / "kubernetes/kustomization.yaml").read_text())["patches"]
    ]
    assert [change["value"] for change in yaml.safe_load(patch)][:2] == [1, 3]
    scale = yaml.safe_load((folder / "container-app.yaml").read_text())["properties"]["template"]["scale"]
    assert (scale["minReplicas"], scale["maxReplicas"]) == (1, 3)
    [rule] = scale["rules"]
    assert "fenceline.lane_depth" in rule["custom"]["metadata"]["query"]
