"""What `explain`, `doctor`, `top` and the metrics say of planted problems; silence where all is well."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.conftest import Connect
from tests.problems.planted import PROBLEMS, Problem
from tests.problems.screen import open_top, read_finding, read_page
from tests.sql.queue import Queue
from tests.support.figures import Figures
from tests.support.patience import eventually

from fenceline.database import calls
from fenceline.doctor import storage_checks
from fenceline.doctor.examine import examine
from fenceline.doctor.finding import Finding, Limits
from fenceline.server.fleet_metrics import WAIT_BOUNDS, FleetMetrics

#: The test's server is known for these, and a clock of 2030 for the others.
KNOWN = {"functions", "setting", "clock_skew", "partitions", "visibility", "disk"}


#: Findings about how things are at this moment: nobody has noted since when.
TIMELESS = {"lost_lock", "handlers_differ", "signatures_differ", "mixed_versions"}
#: Of what has ended, its page tells how.
ENDS = {"failed": "KeyError", "succeeded": "succeeded"}


async def look(connect: Connect) -> list[Finding]:
    return [finding for finding in await examine(await connect()) if finding.check not in KNOWN]


async def samples(queue: Queue, connect: Connect) -> list[str]:
    """The metrics of a server that has counted from the beginning, two seconds later."""
    await queue.move_clock(2 if await queue.sql("select count(*) > 0 from fenceline.history") else 0)
    connection, fleet = await connect(), FleetMetrics()
    asked = calls.stats.measure_fleet("2030-01-01T00:00:00+00:00", WAIT_BOUNDS)
    lanes = calls.lanes.describe_lanes()
    fleet.update(
        lanes.decode(await connection.fetch(lanes.sql, *lanes.parameters)),
        asked.decode(await connection.fetch(asked.sql, *asked.parameters)),
    )
    registry = CollectorRegistry()
    registry.register(fleet)
    return generate_latest(registry).decode().splitlines()


async def ask(
    queue: Queue, connect: Connect, problem: Problem, job: int | None
) -> tuple[dict[str, Any], list[Finding]]:
    """What is said of the job, and what is found; the metrics have said it too."""
    if problem.sample is not None:
        assert problem.sample in await samples(queue, connect)
    told = {} if job is None else await queue.call("explain_job", job)
    return told, await look(connect)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
async def test_a_problem_is_explained_and_found(
    queue: Queue, connect: Connect, database: str, tmp_path: Path, problem: Problem
) -> None:
    job = await problem.plant(queue)
    told, found = await ask(queue, connect, problem, job)
    if job is not None:
        assert told["code"] == problem.code, told
        assert told["text"]
    assert {finding.check for finding in found} == ({problem.check} if problem.check else set())
    for finding in found:
        assert finding.hurts
        assert finding.check in TIMELESS or re.search(
            r"since \d|of \d{4}-|for \d+ s|\d+ s ago|last hour|lately", finding.what
        )
        assert re.search(r"`fenceline |worker|deploy|rollout|remove the row|enqueue", finding.do), finding.do
    with open_top(database, tmp_path) as top:
        if job is not None and told["code"] != "nowhere":  # of that one only the finding knows
            read_page(top, await queue.public_id(job), ENDS.get(told["code"], told["text"]))
        for finding in found:
            read_finding(top, finding)


@pytest.mark.timing
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
async def test_a_problem_is_told_soon(queue: Queue, connect: Connect, figures: Figures, problem: Problem) -> None:
    job = await problem.plant(queue)
    started = time.monotonic()
    await ask(queue, connect, problem, job)
    figures.at_most(f"metrics, explain and doctor on {problem}", time.monotonic() - started, 5)


async def test_silence_on_a_healthy_system_under_load(connect: Connect) -> None:
    """Three producers and workers at once, in real time: nothing to say, at any moment."""
    plain = await connect()
    worker = await plain.fetchval("select fenceline.register_worker('w', 3600, p_kinds => '{work}', p_version => '1')")
    await plain.execute("select fenceline.maintain(), fenceline.upkeep()")
    busy, done = True, [0, 0, 0]

    async def work(number: int) -> None:
        connection = await connect()
        while busy:
            await connection.execute("select fenceline.enqueue_many('work', array['{}','{}','{}']::json[], '{}')")
            rows = await connection.fetch(
                "select job_id, attempt_id from fenceline.claim_jobs($1, 'default', 3)", worker
            )
            await connection.fetch(
                "select * from fenceline.finish_attempts($1, $2)",
                [row["job_id"] for row in rows],
                [row["attempt_id"] for row in rows],
            )
            done[number] += len(rows)

    async def all_are_at_it() -> bool:
        return all(done)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(work(number))
        await eventually(all_are_at_it, "each has done jobs", lambda: done)
        looks = [await look(connect) for _ in range(3)]
        busy = False
    assert looks == [[], [], []]


async def test_what_the_server_runs_out_of(connect: Connect) -> None:
    """No test fills a disk: the limits come to meet it."""
    connection = await connect()
    scarce = Limits(free_share=1.1, slot_bytes=-1)
    found = [finding async for finding in storage_checks.check_disk(connection, scarce)]
    assert [finding.check for finding in found] == ["disk"]
    assert "GiB" in found[0].what
    for check in (storage_checks.check_wal, storage_checks.check_wraparound, storage_checks.check_slots):
        assert [finding async for finding in check(connection, Limits())] == []
