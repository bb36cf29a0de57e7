"""Remote agents that answer later, a worker that is killed in the middle: nothing is lost, nothing is done twice."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from agent_gateway.agents import Agent
from agent_gateway.app import create_tables
from agent_gateway.jobs import analytics
from fenceline.testing import TestedApp

if TYPE_CHECKING:
    from examples.conftest import Programs

pytestmark = pytest.mark.fenceline(app="agent_gateway.jobs:app")

LEASE_SECONDS = 30  # a busy machine does not end it: the test does, by the clock
WORKER = ("fenceline", "worker", "agent_gateway.jobs:app", "--lease", str(LEASE_SECONDS), "--grace", "5")
SLOW_WRITES = """
create function gateway.take_time() returns trigger language plpgsql
as 'begin perform pg_sleep(0.01); return new; end';
create trigger slow before insert on gateway.tool_event for each row execute function gateway.take_time();
"""


def scalar(dsn: str, query: str) -> Any:
    with psycopg.connect(dsn) as connection:
        [[value]] = connection.execute(query).fetchall()
        return value


class PatientAgent(Agent):
    """Thinks until it is told to answer, and remembers what it was asked."""

    def __init__(self, name: str, port: int) -> None:
        super().__init__(name, port, 0.0)
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answer(self, task: dict[str, str]) -> None:
        self.asked.append(task["question"])
        self.may_answer.wait()
        super().answer(task)


@pytest.fixture
def agents(free_ports: list[int], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PatientAgent]]:
    _, *ports = free_ports
    agents = [PatientAgent(name, port) for name, port in zip(("ada", "bob"), ports, strict=True)]
    monkeypatch.setenv("AGENTS", " ".join(f"http://127.0.0.1:{port}" for port in ports))
    yield agents
    for agent in agents:
        agent.shutdown()
        agent.server_close()


@pytest.fixture
def gateway(
    fenceline_app: TestedApp, programs: "Programs", free_ports: list[int], monkeypatch: pytest.MonkeyPatch
) -> str:
    """As a program of its own; where it answers."""
    url = f"http://127.0.0.1:{free_ports[0]}"
    monkeypatch.setenv("FENCELINE_PUBLIC_URL", url)
    programs.start("agent_gateway.gateway", str(free_ports[0]))
    programs.until(lambda: answers(f"{url}/v1/sessions/none"), "the gateway answers")
    return url


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=60).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def test_agents_answer_later_although_the_worker_dies_while_they_think(
    agents: list[PatientAgent], gateway: str, fenceline_app: TestedApp, programs: "Programs"
) -> None:
    worker = programs.start(*WORKER)
    said = {"user_id": "ann", "session_id": "s1", "text": "ask the others: abc"}
    httpx.post(f"{gateway}/v1/messages", json=said, timeout=programs.seconds_left()).raise_for_status()
    jobs = fenceline_app.sync.jobs
    programs.until(
        lambda: [job.waiting_for for job in jobs.list(kind="dispatch-execute").items] == ["signal"] * 2, "both wait"
    )
    programs.signal(worker, signal.SIGKILL)
    fenceline_app.sync.advance(seconds=LEASE_SECONDS + 1)
    for agent in agents:
        agent.may_answer.set()
    programs.start(*WORKER)
    programs.until(lambda: jobs.list(kind="dispatch-synthesize", status="succeeded").items, "all have returned")
    [last] = jobs.list(kind="dispatch-synthesize").items
    assert last.result == {"question": "abc", "answers": ["ada says: cba", "bob says: cba"], "missing": 0}
    assert [agent.asked for agent in agents] == [["abc"], ["abc"]], "each was asked once, whoever died"
    said = httpx.get(f"{gateway}/v1/sessions/s1", timeout=programs.seconds_left()).json()
    assert [message["reply"] for message in said] == ["I heard: ask the others: abc", "ada says: cba; bob says: cba"]


def test_a_worker_killed_in_the_middle_of_batches_writes_each_event_once(
    fenceline_app: TestedApp, fenceline_dsn: str, programs: "Programs"
) -> None:
    count = 1000
    asyncio.run(create_tables())
    with psycopg.connect(fenceline_dsn) as connection:  # a batch of 200 takes two seconds and more
        connection.execute(SLOW_WRITES)
    events = [analytics.ToolEvent("s", "search", float(number)) for number in range(count)]
    jobs = analytics.analytics_write.sync.enqueue_many([vars(event) for event in events])
    killed = programs.start(*WORKER)
    written = "select count(*) from gateway.tool_event"
    programs.until(lambda: scalar(fenceline_dsn, written) > 0, "some are written")
    programs.signal(killed, signal.SIGKILL)
    killed.wait()
    assert 0 < scalar(fenceline_dsn, written) < count, "in the middle"
    fenceline_app.sync.advance(seconds=LEASE_SECONDS + 1)
    programs.start(*WORKER)
    programs.until(lambda: scalar(fenceline_dsn, written) == count, "all are written")
    programs.until(lambda: fenceline_app.sync.system.depth() == 0, "all have ended")
    assert scalar(fenceline_dsn, "select count(distinct milliseconds) from gateway.tool_event") == count
    assert {jobs[number].status() for number in range(0, count, 100)} == {"succeeded"}
