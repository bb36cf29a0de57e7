"""Workers that are stopped, killed, frozen or told to cancel, in the middle of an action that blocks."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from fastapi.testclient import TestClient

from fenceline.testing import TestedApp
from table_maintenance import LANE
from table_maintenance.actions import ORDER
from table_maintenance.catalog import load_table, make_sample_table
from table_maintenance.jobs import app

if TYPE_CHECKING:
    from examples.conftest import Programs

pytestmark = pytest.mark.fenceline(app="table_maintenance.jobs:app")

ORDERS = "/tables/sales/orders/maintenance"
EVERYTHING = {"actions": [*ORDER], "keep_hours": 0}
LEASE_SECONDS = 30
WORKER = (
    "worker",
    "table_maintenance.jobs:app",
    "--lanes",
    LANE,
    "--once",
    "--grace",
    "0",
    "--lease",
    str(LEASE_SECONDS),
)
Blocked = Callable[[], AbstractContextManager[None]]


class Maintenance:
    """A job for sales.orders, and the files that its attempts write."""

    def __init__(self, client: TestClient, programs: "Programs", queue: TestedApp, warehouse: Path) -> None:
        self._client = client
        self._queue = queue
        self._programs = programs
        self._data = warehouse / "sales" / "orders" / "data"
        self.place = client.post(ORDERS, json=EVERYTHING).headers["location"]

    def shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = self._client.get(self.place).json()
        return shown

    def files(self) -> int:
        return len(list(self._data.glob("*.parquet")))

    def start_and_hang(self) -> "subprocess.Popen[bytes]":
        """A worker for one job that has rewritten the files, and hangs in the commit."""
        before = self.files()
        worker = self.start_worker()
        self._programs.until(lambda: self.files() > before, "the action has begun")
        # The worker tells of starts a moment later; an attempt that nobody knows to have begun would cost nothing.
        self._programs.until(lambda: self.shown()["status"] == "running", "the start is told")
        return worker

    def end_lease(self) -> None:
        """Of the worker that is not there any more. Its lease is long: a busy machine does not end it."""
        self._queue.sync.advance(seconds=LEASE_SECONDS + 1)
        self._programs.until(lambda: app.sync.system.depth(LANE) == 1, "the lease of the worker is over")

    def start_worker(self) -> "subprocess.Popen[bytes]":
        return self._programs.start("fenceline", *WORKER)

    def exit_code(self, program: "subprocess.Popen[bytes]") -> int:
        return program.wait(self._programs.seconds_left())


@pytest.fixture
def maintenance(client: TestClient, programs: "Programs", fenceline_app: TestedApp, warehouse: Path) -> Maintenance:
    return Maintenance(client, programs, fenceline_app, warehouse)


def test_sigterm_tidies_up_though_the_action_blocks(
    maintenance: Maintenance, client: TestClient, commits_blocked: Blocked
) -> None:
    with commits_blocked():
        worker = maintenance.start_and_hang()
        worker.send_signal(signal.SIGTERM)
        assert maintenance.exit_code(worker) == 1  # while the commit is blocked, for which SQLite would wait 300 s
        shown = maintenance.shown()
    assert shown["status"] == "failed"
    assert shown["error"]["message"] == "Worker received SIGTERM"
    assert [action["status"] for action in shown["actions"]] == ["listed"] * 3
    assert client.post(ORDERS, json=EVERYTHING).status_code == 202  # the table is free


@pytest.mark.timing
def test_how_long_a_worker_tidies_up_after_sigterm(
    maintenance: Maintenance, commits_blocked: Blocked, record_property: Callable[[str, object], None]
) -> None:
    with commits_blocked():
        worker = maintenance.start_and_hang()
        asked = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        assert maintenance.exit_code(worker) == 1
        took = time.monotonic() - asked
    record_property("figure", f"SIGTERM to the worker's end|{took:.4g} s|≤ 10")
    assert took < 10  # about 2 s on a quiet machine


def test_after_kill_9_the_next_worker_does_it_and_clears_up(
    maintenance: Maintenance, programs: "Programs", commits_blocked: Blocked
) -> None:
    rows = load_table("sales", "orders").scan().to_arrow().num_rows
    with commits_blocked():
        worker = maintenance.start_and_hang()
        programs.signal(worker, signal.SIGKILL)
        assert maintenance.shown()["status"] == "running"  # nobody was left to say otherwise
    maintenance.end_lease()
    assert maintenance.exit_code(maintenance.start_worker()) == 0
    shown = maintenance.shown()
    assert (shown["status"], shown["attempt"]) == ("succeeded", 2)
    # Twelve files, and the one that the dead worker had written and not committed.
    assert shown["actions"][2]["result"]["removed_files"] > 13
    assert maintenance.files() == 1
    assert load_table("sales", "orders").scan().to_arrow().num_rows == rows


def test_a_frozen_worker_that_wakes_up_writes_nothing(
    maintenance: Maintenance, programs: "Programs", commits_blocked: Blocked
) -> None:
    with commits_blocked():
        frozen = maintenance.start_and_hang()
        programs.signal(frozen, signal.SIGSTOP)
    maintenance.end_lease()
    assert maintenance.exit_code(maintenance.start_worker()) == 0
    done = load_table("sales", "orders").metadata_location
    programs.signal(frozen, signal.SIGCONT)
    assert maintenance.exit_code(frozen) == 1
    shown = maintenance.shown()
    assert (shown["status"], shown["attempt"]) == ("succeeded", 2)
    # Neither the queue nor the catalogue took anything from it.
    assert load_table("sales", "orders").metadata_location == done


def test_a_forced_cancel_frees_the_table_though_the_action_blocks(
    maintenance: Maintenance, client: TestClient, commits_blocked: Blocked
) -> None:
    with commits_blocked():
        worker = maintenance.start_and_hang()
        assert client.post(f"{maintenance.place}/cancel", params={"force": True}).json() == {"status": "cancelled"}
        assert client.post(ORDERS, json=EVERYTHING).status_code == 202
        assert maintenance.exit_code(worker) == 1  # its attempt is gone, and so is its reason to wait
    shown = maintenance.shown()
    assert shown["status"] == "cancelled"
    assert [action["status"] for action in shown["actions"]] == ["listed"] * 3


def test_a_worker_per_job_and_none_when_there_is_nothing_to_do(
    client: TestClient, programs: "Programs", fenceline_app: TestedApp
) -> None:
    for table in ("customers", "returns", "orders"):
        make_sample_table("sales", table, appends=3)
        assert client.post(f"/tables/sales/{table}/maintenance", json=EVERYTHING).status_code == 202
    scaler = programs.start("table_maintenance.scaler", "--poll", "1", "--max-workers", "2")

    def ended() -> bool:
        return len(fenceline_app.sync.jobs.list(status="succeeded").items) == 3

    programs.until(ended, "all three tables are done")
    workers = {record.worker for record in fenceline_app.sync.jobs.list(status="succeeded").items}
    assert len(workers) == 3
    programs.until(lambda: not workers_of(scaler), "each worker has ended with its job")
    for _ in range(30):  # while it looks three times more
        assert workers_of(scaler) == []
        time.sleep(0.1)
    scaler.send_signal(signal.SIGTERM)
    assert scaler.wait(programs.seconds_left()) == 0


def workers_of(scaler: "subprocess.Popen[bytes]") -> list[list[str]]:
    commands = []
    for process in psutil.Process(scaler.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            commands.append(process.cmdline())
    return [command for command in commands if "--once" in command]
