"""Prometheus metrics of a supervisor for all its children."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from uuid import uuid4

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.patience import eventually, seconds_left
from tests.worker.in_process_worker import running

from fenceline import Fenceline
from fenceline.context.attempt import Attempt, Ending
from fenceline.engine.statistics import BOUNDS, RunStatistics
from fenceline.worker.worker_metrics import Metrics

APP = """
import asyncio, os, time
from fenceline import Fenceline, Retry
app = Fenceline()

@app.job()
async def quick(): ...

@app.job()
async def slow():
    await asyncio.sleep(0.3)

@app.job(retry=Retry(max_attempts=1))
def failing():
    raise LookupError("no")
"""


def test_children_are_added_up_and_forgotten() -> None:
    metrics = Metrics()
    for pid in (1, 2):
        statistics = RunStatistics()
        statistics.ended["work", "succeeded"] = 3
        statistics.claimed = 3
        counts = {**statistics.take(), "running": 2, "waiting": 1, "lost_places": 0}
        metrics.update(pid, counts)
    assert values(metrics)["fenceline_attempts_ended_total", "work"] == 6
    assert values(metrics)["fenceline_running", ""] == 4
    metrics.forget(1)
    assert values(metrics)["fenceline_running", ""] == 2
    assert values(metrics)["fenceline_attempts_claimed_total", ""] == 6
    assert values(metrics)["fenceline_children", ""] == 1


def test_run_times_fall_into_their_buckets() -> None:
    statistics = RunStatistics()
    attempt = Attempt("default", 1, uuid4(), 1, 1, "work", "{}", "default", 0, 1, 3, None, False, None)
    for seconds in (0.0005, 0.001, 0.3, 5000.0):
        statistics.note_ended([Ending(attempt, ran_seconds=seconds)])
    metrics = Metrics()
    zero = {"running": 0, "waiting": 0, "lost_places": 0}
    metrics.update(1, {**statistics.take(), **zero})
    metrics.update(1, {**statistics.take(), **zero})  # nothing since: nothing added
    text = generate_latest(metrics.registry()).decode()
    assert 'fenceline_run_seconds_bucket{kind="work",le="0.001"} 2.0' in text
    assert 'fenceline_run_seconds_bucket{kind="work",le="0.5"} 3.0' in text
    assert f'fenceline_run_seconds_bucket{{kind="work",le="{BOUNDS[-1]}"}} 3.0' in text
    assert 'fenceline_run_seconds_count{kind="work"} 4.0' in text


def values(metrics: Metrics) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels.get("kind", "")): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }


async def test_nothing_is_counted_unless_wanted(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("counted")

    monkeypatch.setattr(RunStatistics, "_note_kind", fail)
    app = Fenceline(database)

    @app.job()
    async def work() -> None: ...

    async with running(app):
        assert await (await app.enqueue("work")).wait(timeout=seconds_left()) == "succeeded"


async def test_a_supervisor_serves_them(database: str, tmp_path: Path) -> None:
    (tmp_path / "measured.py").write_text(APP)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).parent / "fenceline"), "worker", "measured:app", "--metrics-port", str(port)]
    worker = subprocess.Popen(  # noqa: ASYNC220 - nothing else happens on this loop
        [*command, "--processes", "2", "--grace", "1", "--log-format", "json"],
        cwd=tmp_path,
        env={**os.environ, "FENCELINE_DSN": database},
    )
    app = Fenceline(database)
    try:
        jobs = [await app.enqueue("quick") for _ in range(20)]
        asked = time.monotonic()
        jobs += [await app.enqueue("slow"), await app.enqueue("failing", max_attempts=1)]
        for job in jobs:
            await job.wait(timeout=seconds_left())
        found: dict[str, float] = {}
        wanted = {"ended quick succeeded": 20, "ended slow succeeded": 1, "ended failing failed": 1, "children": 2}

        async def reported() -> bool:
            """The children report once a second, each in its own time."""
            nonlocal found
            found = await asyncio.to_thread(scrape, port)
            released = sum(count for name, count in found.items() if name.endswith(" released"))
            return wanted.items() <= found.items() and found["claimed"] == 22 + released

        await eventually(reported, "all ends are reported", lambda: found)
        assert found["count slow"] == 1
        # In seconds: 0.3, less a tick of the loop's clock, and no more than have passed.
        assert 0.29 <= found["sum slow"] <= time.monotonic() - asked
    finally:
        await app.close()
        worker.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(worker.wait, seconds_left())
        finally:
            worker.kill()
            worker.wait()


def scrape(port: int) -> dict[str, float]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=max(1.0, seconds_left())) as answer:
            text = answer.read().decode()
    except OSError:
        return {}
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix("fenceline_").removeprefix("attempts_").removesuffix("_total")
            name = name.replace("run_seconds_", "")
            labels = [sample.labels[label] for label in ("kind", "outcome") if label in sample.labels]
            found[" ".join([name, *labels])] = sample.value
    return found
