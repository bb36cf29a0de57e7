"""Handlers that block their event loop: they are named, and they end when their time is over."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from tests.worker.fleet import Fleet, until

from fenceline.engine.running_board import OVERDUE_SECONDS, RunningBoard
from fenceline.worker.blockage import BLOCKED_SECONDS, Blame, Blockage

BLOCKING_APP = """
import ctypes, time
from sample_app import app, note

@app.job()
async def spin(seconds: float, *, ctx):
    note("start", ctx)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass

@app.job()
def hold_the_gil_in_a_thread(seconds: float, *, ctx):
    note("start", ctx)
    ctypes.PyDLL(None).usleep(ctypes.c_uint(int(seconds * 1_000_000)))
"""


async def block_past_the_timeout(fleet: Fleet, kind: str) -> None:
    """Two neighbours, and one that blocks them: it fails when its time is over, they keep all their attempts."""
    (fleet.folder / "blocking_app.py").write_text(BLOCKING_APP)
    worker = await fleet.started("--lease", "60", app="blocking_app:app")
    gate = fleet.folder / "gate"
    neighbours = await fleet.enqueue("until_released", {"gate": str(gate)}, count=2)
    await fleet.handlers(2)
    asked = time.monotonic()
    [blocker] = await fleet.enqueue(kind, {"seconds": 3600}, timeout=3, max_attempts=1)
    await fleet.ended(1)
    assert time.monotonic() - asked >= 3 + OVERDUE_SECONDS
    [ended] = await fleet.history(blocker)
    assert (ended["outcome"], ended["final"]) == ("failed", True)
    assert '"timeout"' in ended["error"]
    gate.touch()
    await fleet.ended(3)
    for job_id in neighbours:
        attempts = await fleet.history(job_id)
        assert [(row["outcome"], row["number"]) for row in attempts] == [("released", 1), ("succeeded", 1)]
    name = await fleet.scalar("select fenceline.public_id($1)", blocker)
    assert "its event loop has been blocked for" in worker.output()
    assert f"job {name} blocks it past a timeout, so it is killed" in worker.output()


@pytest.mark.parametrize("kind", ["spin", "hold_the_gil_in_a_thread"])
async def test_a_handler_that_blocks_its_loop_ends_when_its_time_is_over(fleet: Fleet, kind: str) -> None:
    await block_past_the_timeout(fleet, kind)


async def test_in_a_program_of_others_it_is_fenced_off(fleet: Fleet) -> None:
    """The helper cannot kill the program; another worker takes over what it held."""
    (fleet.folder / "blocking_app.py").write_text(BLOCKING_APP)
    (fleet.folder / "program.py").write_text(
        "import asyncio\nfrom blocking_app import app\nasyncio.run(app.run_worker(lease_seconds=60))\n"
    )
    environment = {**os.environ, "FENCELINE_DSN": fleet.dsn, "LEDGER": str(fleet.ledger_file)}
    gate = fleet.folder / "gate"
    with subprocess.Popen([sys.executable, "program.py"], cwd=fleet.folder, env=environment) as program:  # noqa: ASYNC220
        try:
            [neighbour] = await fleet.enqueue("until_released", {"gate": str(gate)})
            await fleet.handlers(1)
            helper = "select exists (select 1 from fenceline.maintenance where task = 'live')"
            await until(lambda: fleet.scalar(helper), "the helper has started")
            [blocker] = await fleet.enqueue("hold_the_gil", {"seconds": 3600}, timeout=1, max_attempts=1)
            await fleet.ended(1)
            gate.touch()
            await fleet.started()
            await fleet.ended(2)
        finally:
            program.kill()
    assert '"timeout"' in (await fleet.history(blocker))[-1]["error"]
    assert [row["outcome"] for row in await fleet.history(neighbour)] == ["released", "succeeded"]


async def test_a_blocked_loop_is_told_to_the_database(fleet: Fleet) -> None:
    (fleet.folder / "blocking_app.py").write_text(BLOCKING_APP)
    worker = await fleet.started("--lease", "8", app="blocking_app:app")
    gate = fleet.folder / "gate"
    [blocker] = await fleet.enqueue("block_the_loop_until_released", {"gate": str(gate)})
    told = "select blocked_by from fenceline.worker where blocked_at < clock_timestamp() - interval '2 seconds'"
    assert await until(lambda: fleet.scalar(told), "the worker is noted as blocked") == blocker
    gate.touch()

    async def turns_again() -> bool:
        return not await fleet.scalar("select exists (select 1 from fenceline.worker where blocked_at is not null)")

    await until(turns_again, "it turns again")

    async def says_so() -> bool:
        return "its event loop turns again" in worker.output()

    await until(says_so, "the log says so", worker.output)
    await fleet.ended(1)
    [ended] = await fleet.history(blocker)
    assert ended["outcome"] == "succeeded", "without a timeout nobody ends it"


# Whom to blame -------------------------------------------------------------------------------------------------------


class Watch:
    """A board, and the time as its watcher sees it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.stopped = False
        monkeypatch.setattr("fenceline.worker.blockage.time.monotonic", lambda: self.now)
        self.board = RunningBoard(entries=8)
        self.blockage = Blockage(self.board, lambda: self.stopped)

    def note(self, timeout: float | None, *, in_thread: bool = False) -> tuple[UUID, int]:
        attempt_id = uuid4()
        deadline = None if timeout is None else self.now + timeout
        return attempt_id, self.board.note(attempt_id, 7, deadline, in_thread=in_thread)

    def wait(self, seconds: float) -> Blame | None:
        """Look twice a second; the last verdict."""
        verdict = None
        for _ in range(int(seconds * 2)):
            self.now += 0.5
            verdict = self.blockage.look()
        return verdict


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    watch = Watch(monkeypatch)
    yield watch
    watch.board.close()


def test_nobody_is_blamed_while_the_loop_turns_or_time_is_left(watch: Watch) -> None:
    _, place = watch.note(100.0)
    watch.board.enter(place)
    assert watch.wait(100 + OVERDUE_SECONDS) is None
    assert watch.blockage.is_blocked
    watch.board.beat()
    assert watch.wait(1) is None
    assert not watch.blockage.is_blocked


def test_whoever_has_its_turn_is_blamed_and_not_who_waits(watch: Watch) -> None:
    watch.note(1.0)
    blocker, place = watch.note(2.0)
    watch.board.enter(place)
    assert watch.wait(2 + OVERDUE_SECONDS) == Blame([], [blocker], [7]), "it still has time, but costs another its own"
    assert watch.wait(1) == Blame([blocker], [], [7])


def test_a_thread_is_blamed_for_its_own_time(watch: Watch) -> None:
    _, place = watch.note(None)
    watch.board.enter(place)
    watch.board.enter(None)
    thread, _ = watch.note(1.0, in_thread=True)
    assert watch.wait(2 + OVERDUE_SECONDS) == Blame([thread], [], [7])


def test_without_a_turn_the_first_whose_time_is_over_is_blamed(watch: Watch) -> None:
    watch.note(2.0)
    first, _ = watch.note(1.0)
    assert watch.wait(4 + OVERDUE_SECONDS) == Blame([first], [], [7])


def test_what_was_not_watched_proves_nothing(watch: Watch) -> None:
    """The process was stopped, or the watcher was: neither shows that the loop is blocked."""
    watch.note(1.0)
    watch.stopped = True
    assert watch.wait(2 * OVERDUE_SECONDS) is None
    watch.stopped = False
    assert watch.wait(BLOCKED_SECONDS - 1) is None
    watch.now += 60
    assert watch.blockage.look() is None
    assert watch.wait(BLOCKED_SECONDS - 1) is None
    assert watch.wait(1) is not None
