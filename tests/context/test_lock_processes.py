"""`ctx.lock` and `ctx.guard_newer` across real worker processes: under load, killed, stopped, isolated."""

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import Connect
from tests.support.figures import Figures
from tests.worker.fleet import Connection, Fleet, is_alive, kill, until

APP = "lock_app:app"


@dataclass(frozen=True, slots=True)
class Line:
    word: str
    lock: str
    job_id: int
    attempt: int
    pid: int
    at: float


class LockFleet(Fleet):
    def __init__(self, dsn: str, folder: Path, connection: Connection) -> None:
        super().__init__(dsn, folder, connection)
        self.app = APP
        shutil.copy(Path(__file__).with_name("lock_app.py"), self.folder / "lock_app.py")

    def lines(self) -> list[Line]:
        if not self.ledger_file.exists():
            return []
        written, _, _ = self.ledger_file.read_text().rpartition("\n")  # not the line that is being written
        words = [text.split() for text in written.splitlines()]
        return [Line(w, lock, int(job), int(n), int(pid), float(at)) for w, lock, job, n, pid, at in words]

    async def until_line(self, word: str, *, job_id: int | None = None) -> Line:
        async def found() -> Line | None:
            return next((x for x in self.lines() if x.word == word and job_id in (None, x.job_id)), None)

        line: Line = await until(found, f"a line {word} of job {job_id}")
        return line


@pytest.fixture
async def fleet(database: str, tmp_path: Path, connect: Connect) -> AsyncIterator[LockFleet]:
    fleet = LockFleet(database, tmp_path, await connect())
    yield fleet
    fleet.close()


def assert_never_two_inside(lines: list[Line]) -> None:
    """Lines are appended atomically, so the file's order is the order of things."""
    inside: dict[str, int] = {}
    for line in lines:
        if line.word == "in":
            assert line.lock not in inside, f"job {line.job_id} came in while {inside[line.lock]} was there"
            inside[line.lock] = line.job_id
        elif line.word == "out":
            assert inside.pop(line.lock) == line.job_id


async def test_one_at_a_time_across_processes(fleet: LockFleet) -> None:
    await fleet.started("--processes", "2", children=2)
    await fleet.started("--processes", "1")
    count = 0
    for kind, number in (("edit", 120), ("edit_blocking", 30), ("edit_isolated", 6), ("edit_isolated_async", 6)):
        for edition in (1, 2, 3):
            await fleet.enqueue(kind, {"edition": edition}, count=number // 3)
        count += number
    await fleet.ended(count)
    lines = fleet.lines()
    assert_never_two_inside(lines)
    assert Counter(line.word for line in lines) == {"in": count, "out": count}
    assert len({line.pid for line in lines}) >= 4, "workers and isolated processes"
    assert await fleet.scalar("select count(*) from fenceline.history where not final or outcome <> 'succeeded'") == 0
    assert await fleet.scalar("select count(*) from fenceline.attempt_lock") == 0
    assert await fleet.scalar("select count(*) from fenceline.lock_wait") == 0


async def test_the_lock_of_a_killed_child_is_taken_over_at_once(fleet: LockFleet) -> None:
    """Not by the end of its lease, which would come long after the test."""
    await take_over(fleet)


@pytest.mark.timing
async def test_how_soon_the_lock_of_a_killed_child_is_taken_over(fleet: LockFleet, figures: Figures) -> None:
    figures.at_most("the heir has ended after the attempt was gone", await take_over(fleet), 3)


async def take_over(fleet: LockFleet) -> float:
    """The holder of a lock is killed. The seconds from its end to that of the next one."""
    gate = fleet.folder / "gate"
    for lane in ("default", "interactive"):
        await fleet.started("--lanes", lane, "--lease", "3600")
    (holder,) = await fleet.enqueue("hold_first", {"edition": 1, "gate": str(gate)})
    line = await fleet.until_line("in", job_id=holder)
    (heir,) = await fleet.enqueue("edit", {"edition": 1}, lane="interactive")

    async def waits() -> bool:
        return bool(await fleet.scalar("select count(*) from fenceline.lock_wait where job_id = $1", heir))

    await until(waits, "the heir waits")
    kill(line.pid)
    taken = await fleet.until_line("in", job_id=heir)
    gate.touch()
    await fleet.ended(2)
    gone, done = [
        await fleet.scalar("select min(ended_at) from fenceline.history where job_id = $1", job)
        for job in (holder, heir)
    ]
    assert taken.pid != line.pid
    assert_never_two_inside([x for x in fleet.lines() if x.pid != line.pid])
    return float((done - gone).total_seconds())


async def test_a_zombies_lock_is_no_lock(fleet: LockFleet) -> None:
    gate = fleet.folder / "gate"
    zombie = await fleet.started("--lease", "60")
    (holder,) = await fleet.enqueue("hold_first", {"edition": 1, "gate": str(gate)})
    line = await fleet.until_line("in", job_id=holder)
    await fleet.started()
    (heir,) = await fleet.enqueue("edit", {"edition": 1})
    # All of it stops, and is not heard of until its lease is over: another takes the job and the lock.
    stopped = [*zombie.children(), zombie.pid]
    # Once the start is told: what is lost untold is refunded, and has no second attempt.
    start = "select started_at from fenceline.running where job_id = $1"
    await until(lambda: fleet.scalar(start, holder), "the start is told")
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        await fleet.end_lease(line.pid)
        await fleet.until_line("in", job_id=heir)

        async def again() -> bool:
            return any(x.word == "out" and x.job_id == holder and x.attempt == 2 for x in fleet.lines())

        await until(again, "the second attempt of the holder has had the lock too")
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    # Back again, it believes to be in the block. What it does outside of the database cannot be helped, but here it
    # is nobody: it is stopped, or its write is stale.
    gate.touch()
    await fleet.ended(2)

    async def noticed() -> bool:
        is_stale = any(x.word == "stale" and x.pid == line.pid for x in fleet.lines())
        return is_stale or "stale_attempt" in zombie.output() or zombie.process.poll() is not None

    await until(noticed, "the zombie is told")
    assert not [x for x in fleet.lines() if x.word == "out" and x.pid == line.pid and x.job_id == holder]
    assert await fleet.scalar("select state->>'by' from fenceline.checkpoint where job_id = $1", holder) == "2"
    await fleet.each_has_one_final_row(2)


async def test_an_isolated_handler_that_is_killed_leaves_no_lock(fleet: LockFleet) -> None:
    await fleet.started()
    (stuck,) = await fleet.enqueue("stay_isolated", {"edition": 1})
    inside = await fleet.until_line("in", job_id=stuck)
    (heir,) = await fleet.enqueue("edit_isolated", {"edition": 1})
    await fleet.scalar("select fenceline.cancel_job($1, p_grace_seconds => 0)", stuck)  # it does not listen
    await fleet.ended(2)

    async def killed() -> bool:
        return not is_alive(inside.pid)

    await until(killed, "its process is gone")
    history = {row["job_id"]: row for row in await fleet.history()}
    assert history[stuck]["outcome"] == "cancelled"
    assert history[heir]["outcome"] == "succeeded"


async def test_an_isolated_handler_that_takes_too_long_leaves_no_lock(fleet: LockFleet) -> None:
    await fleet.started()
    (stuck,) = await fleet.enqueue("stay_isolated_for_seconds", {"edition": 1})
    (heir,) = await fleet.enqueue("edit_isolated", {"edition": 1})
    await fleet.ended(2)
    history = {row["job_id"]: row for row in await fleet.history()}
    assert (history[stuck]["outcome"], json.loads(history[stuck]["error"])["code"]) == ("failed", "timeout")
    assert history[heir]["outcome"] == "succeeded"


async def test_the_newest_version_wins(fleet: LockFleet) -> None:
    """Racing jobs in any order: what is written only ever gets newer, and the newest is written last."""
    await fleet.started("--processes", "2", children=2)
    versions = [7, 3, 9, 1, 12, 5, 11, 2, 10, 4, 8, 6, 0] * 3
    for version in versions:
        await fleet.enqueue("guarded", {"version": version})
    await fleet.ended(len(versions))
    written = [int(line.lock) for line in fleet.lines()]
    assert written == sorted(written)
    assert written[-1] == 12
    outcomes = Counter(
        (row["outcome"], row["code"])
        for row in await fleet.connection.fetch("select outcome, error->>'code' as code from fenceline.history")
    )
    assert outcomes == {
        ("succeeded", None): len(written),
        ("cancelled", "superseded"): len(versions) - len(written),
    }
    assert outcomes["cancelled", "superseded"] > 0
