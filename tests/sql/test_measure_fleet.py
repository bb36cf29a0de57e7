"""The fleet in figures."""

from datetime import datetime

from tests.sql.queue import Json, Queue

BOUNDS = [1.0, 10.0]


async def measure(queue: Queue, since: datetime | None = None) -> Json:
    told: Json = await queue.call("measure_fleet", since=since, bounds=BOUNDS)
    return told


async def test_workers_and_jobs_at_this_moment(queue: Queue) -> None:
    await queue.register("lost", lease_seconds=5)
    await queue.register("frozen", lease_seconds=86400)
    await queue.register("server@here", lease_seconds=86400, lanes=["webhooks"])  # does nobody's jobs
    await queue.sql("update fenceline.worker set blocked_at = fenceline.clock() where name = 'frozen'")
    await queue.enqueue(run_at=await queue.at(600))
    await queue.enqueue(needs_approval=True)
    await queue.enqueue(after=[await queue.enqueue()])
    await queue.move_clock(10)
    told = await measure(queue)
    assert told["workers"] == {"live": 1, "blocked": 1, "lost": 1}
    assert told["jobs"] == {"scheduled": 1, "waiting": 1, "awaiting_approval": 1}
    assert told["draining"] is False
    assert (told["ended"], told["waits"], told["attempts"]) == ([], [], {"lost": 0, "crashed": 0, "quarantined": 0})


async def test_what_ended_is_counted_once(queue: Queue) -> None:
    since = datetime.fromisoformat((await measure(queue))["until"])
    jobs = [await queue.enqueue() for _ in range(3)]
    await queue.move_clock(5)
    for job in jobs:
        await queue.run(job)
    await queue.finished(outcome="failed_for_good", lane="system")
    assert (await measure(queue, since))["ended"] == [], "what ends now may not have committed yet"
    await queue.move_clock(2)
    told = await measure(queue, since)
    assert sorted(told["ended"]) == [["default", "succeeded", 3], ["system", "failed", 1]]
    assert sorted(told["waits"]) == [["default", "work", 15, [0, 3, 0]], ["system", "work", 0, [1, 0, 0]]]
    again = await measure(queue, datetime.fromisoformat(told["until"]))
    assert (again["ended"], again["waits"]) == ([], [])


async def test_crashes_and_quarantine(queue: Queue) -> None:
    since = await queue.sql("select fenceline.clock()")
    await queue.move_clock(1)
    job = await queue.enqueue()
    for number in range(3):
        worker = await queue.register(f"w{number}")
        await queue.claim_one(worker=worker, alone=number > 0)
        await queue.call("report_crash", worker)
    await queue.move_clock(2)
    assert await queue.status(job) == "failed"
    assert (await measure(queue, since))["attempts"] == {"lost": 0, "crashed": 3, "quarantined": 1}
