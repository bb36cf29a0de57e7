"""How a worker ends: in good order, in time, and with every job accounted for."""

import signal
import time
from pathlib import Path

import pytest
from tests.support.figures import Figures
from tests.worker.fleet import Fleet, WorkerProcess, is_alive, until


async def received(worker: WorkerProcess, number: int) -> None:
    """Until the process has taken a signal: until then a second one of its sort would be the same one."""

    status_file = Path(f"/proc/{worker.pid}/status")

    async def is_taken() -> bool:
        status = dict(line.split(":", 1) for line in status_file.read_text().splitlines() if ":" in line)  # noqa: ASYNC240 - of /proc
        return not (int(status["ShdPnd"], 16) | int(status["SigPnd"], 16)) & 1 << (number - 1)

    await until(is_taken, "the signal is taken")


async def stop_with_a_hung_handler(fleet: Fleet, *, grace: float = 1.0) -> float:
    """How long it took to end; the job must be back in the queue, its attempt refunded."""
    worker = await fleet.started("--grace", str(grace))
    [job_id] = await fleet.enqueue("blocking_nap", {"seconds": 3600})
    await fleet.handlers(1)
    asked = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
    took = time.monotonic() - asked
    assert (
        await fleet.scalar("select status from fenceline.jobs where id = fenceline.public_id($1)", job_id) == "queued"
    )
    history = await fleet.history(job_id)
    assert [(row["outcome"], row["final"]) for row in history] == [("released", False)]
    assert await fleet.scalar("select coalesce(number, 0) from fenceline.ready where job_id = $1", job_id) == 0
    return took


async def test_a_hung_handler_does_not_hold_up_the_end(fleet: Fleet) -> None:
    await stop_with_a_hung_handler(fleet, grace=0.1)


@pytest.mark.timing
async def test_how_soon_a_worker_with_a_hung_handler_ends(fleet: Fleet, figures: Figures) -> None:
    figures.at_most("ends after its grace period of 1 s and", await stop_with_a_hung_handler(fleet) - 1.0, 2.0)


async def stop_with_a_stubborn_handler(fleet: Fleet) -> float:
    """How long it took to end; the job has failed."""
    worker = await fleet.started("--grace", "0")
    [job_id] = await fleet.enqueue("stubborn", {"seconds": 3600})
    await fleet.handlers(1)
    asked = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
    took = time.monotonic() - asked
    [row] = await fleet.history(job_id)
    assert row["outcome"] == "failed"
    assert row["final"]
    assert "Worker received SIGTERM" in row["error"]
    return took


async def test_a_kind_may_choose_to_fail(fleet: Fleet) -> None:
    await stop_with_a_stubborn_handler(fleet)


@pytest.mark.timing
async def test_how_soon_a_worker_with_a_stubborn_handler_ends(fleet: Fleet, figures: Figures) -> None:
    figures.at_most("ends after", await stop_with_a_stubborn_handler(fleet), 2.5)


async def test_handlers_may_finish_within_the_grace_period(fleet: Fleet) -> None:
    worker = await fleet.started("--grace", "3600", "--concurrency", "2")
    running = await fleet.enqueue("until_shut_down", count=2)
    await fleet.handlers(2)
    waiting = await fleet.enqueue("nap", count=3)
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
    for job_id in running:
        assert [row["outcome"] for row in await fleet.history(job_id)] == ["succeeded"]
    for job_id in waiting:
        assert {row["outcome"] for row in await fleet.history(job_id)} <= {"released"}
    assert await fleet.scalar("select count(*) from fenceline.running") == 0
    assert await fleet.scalar("select count(*) from fenceline.worker where stopped_at is null") == 0


async def stop_an_idle_worker(fleet: Fleet, number: int) -> float:
    """How long it took to end."""
    worker = await fleet.started("--processes", "2", children=2)
    children = worker.children()
    await fleet.waiting("default", 2)
    asked = time.monotonic()
    worker.signal(number)
    assert await worker.exit_code() == 0
    took = time.monotonic() - asked
    assert not any(is_alive(pid) for pid in children)
    assert await fleet.scalar("select count(*) from fenceline.worker where stopped_at is null") == 0
    assert "Traceback" not in worker.output()
    return took


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_idle_worker_ends(fleet: Fleet, number: int) -> None:
    await stop_an_idle_worker(fleet, number)


@pytest.mark.timing
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_idle_worker_ends_at_once(fleet: Fleet, figures: Figures, number: int) -> None:
    figures.at_most("ends after", await stop_an_idle_worker(fleet, number), 2.0)


async def test_a_second_signal_skips_the_grace_period(fleet: Fleet) -> None:
    worker = await fleet.started("--grace", "3600")
    [job_id] = await fleet.enqueue("nap", {"seconds": 3600})
    await fleet.handlers(1)
    worker.signal(signal.SIGINT)
    await received(worker, signal.SIGINT)
    worker.signal(signal.SIGINT)
    assert await worker.exit_code() == 0
    assert [row["outcome"] for row in await fleet.history(job_id)] == ["released"]


async def test_a_signal_while_children_start_ends_them(fleet: Fleet) -> None:
    worker = fleet.start()

    async def has_a_child() -> bool:
        return bool(worker.children())

    await until(has_a_child, "a child is started")
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0
    assert fleet.ledger() == []
