"""Remote agents that answer later, a worker that is killed in the middle: nothing is lost, nothing is done twice."""

import signal
import time
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from agent_gateway.jobs import analytics
from fenceline.testing import TestedApp

if TYPE_CHECKING:
    from examples.conftest import Programs

pytestmark = pytest.mark.fenceline(app="agent_gateway.jobs:app")

WORKER = ("fenceline", "worker", "agent_gateway.jobs:app", "--lease", "4", "--grace", "5")


def scalar(dsn: str, query: str) -> Any:
    with psycopg.connect(dsn) as connection:
        [[value]] = connection.execute(query).fetchall()
        return value


@pytest.fixture
def gateway(
    fenceline_app: TestedApp, programs: "Programs", free_ports: list[int], monkeypatch: pytest.MonkeyPatch
) -> str:
    """The gateway and two agents, as programs of their own; where it answers."""
    port, *agents = free_ports
    url = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("FENCELINE_PUBLIC_URL", url)
    monkeypatch.setenv("AGENTS", " ".join(f"http://127.0.0.1:{agent}" for agent in agents))
    programs.start("agent_gateway.gateway", str(port))
    for name, agent in zip(("ada", "bob"), agents, strict=True):
        programs.start("agent_gateway.agents", name, str(agent), "2.0")
    programs.until(lambda: answers(f"{url}/v1/sessions/none"), "the gateway answers")
    programs.until(lambda: all(answers(f"http://127.0.0.1:{agent}/models") for agent in agents), "the agents answer")
    return url


def answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def test_agents_answer_later_although_the_worker_dies_while_they_think(
    gateway: str, fenceline_app: TestedApp, programs: "Programs"
) -> None:
    worker = programs.start(*WORKER)
    said = {"user_id": "ann", "session_id": "s1", "text": "ask the others: abc"}
    httpx.post(f"{gateway}/v1/messages", json=said).raise_for_status()
    jobs = fenceline_app.sync.jobs
    programs.until(
        lambda: any(job.waiting_for == "signal" for job in jobs.list(kind="dispatch-execute").items), "one waits"
    )
    programs.signal(worker, signal.SIGKILL)
    programs.start(*WORKER)
    programs.until(lambda: jobs.list(kind="dispatch-synthesize", status="succeeded").items, "all have returned")
    [last] = jobs.list(kind="dispatch-synthesize").items
    assert last.result == {"question": "abc", "answers": ["ada says: cba", "bob says: cba"], "missing": 0}
    for job in jobs.list(kind="dispatch-execute").items:
        sent = [step for step in jobs.handle(job.id).steps() if step.name == "send"]
        assert [step.status for step in sent] == ["done"], "each agent was asked once"


def test_a_worker_killed_in_the_middle_of_batches_writes_each_event_once(
    fenceline_app: TestedApp, fenceline_dsn: str, programs: "Programs"
) -> None:
    count = 4000
    events = [analytics.ToolEvent("s", "search", float(number)) for number in range(count)]
    jobs = analytics.analytics_write.sync.enqueue_many([vars(event) for event in events])
    killed = programs.start(*WORKER)
    written = "select count(*) from gateway.tool_event"
    programs.until(lambda: table_is_there(fenceline_dsn) and scalar(fenceline_dsn, written) > 0, "some are written")
    programs.signal(killed, signal.SIGKILL)
    before = scalar(fenceline_dsn, written)
    programs.start(*WORKER)
    programs.until(lambda: scalar(fenceline_dsn, written) == count, "all are written")
    programs.until(lambda: fenceline_app.sync.system.depth() == 0, "all have ended")
    assert scalar(fenceline_dsn, "select count(distinct milliseconds) from gateway.tool_event") == count
    assert {jobs[number].status() for number in range(0, count, 400)} == {"succeeded"}
    assert before <= count


def table_is_there(dsn: str) -> bool:
    time.sleep(0.01)
    return bool(scalar(dsn, "select to_regclass('gateway.tool_event') is not null"))
