"""A signal and the wait for it, written at the same time by sessions that do not see each other."""

from tests.sql.sessions import (
    Attempt,
    Connect,
    Connection,
    claim_one,
    enqueue,
    finish,
    maintain,
    many,
    register,
    status,
)


async def begun(connection: Connection, seconds: float | None = None) -> Attempt:
    """An attempt whose handler has come to its wait."""
    await enqueue(connection)
    attempt = await claim_one(connection, await register(connection))
    text = "select fenceline.begin_wait($1, $2, 'w', 'go', $3)"
    await connection.execute(text, attempt.job_id, attempt.attempt_id, seconds)
    return attempt


async def waiting(connection: Connection, seconds: float | None = None) -> int:
    """A job that waits outside its slot."""
    attempt = await begun(connection, seconds)
    assert await finish(connection, attempt, "waiting") == "accepted"
    return attempt.job_id


async def a_signal_that_commits_after_the_wait_is_heard(connect: Connect) -> None:
    sender, worker = await many(connect, 2)
    attempt = await begun(worker)
    transaction = sender.transaction()
    await transaction.start()
    await sender.execute("select fenceline.signal_job($1, 'go')", attempt.job_id)
    assert await finish(worker, attempt, "waiting") == "accepted"
    await maintain(worker)
    assert await status(worker, attempt.job_id) == "waiting"
    await transaction.commit()
    await maintain(worker)
    assert await status(worker, attempt.job_id) == "queued"


async def a_wait_that_commits_after_its_signal_hears_it(connect: Connect) -> None:
    sender, worker = await many(connect, 2)
    attempt = await begun(worker)
    transaction = worker.transaction()
    await transaction.start()
    assert await finish(worker, attempt, "waiting") == "accepted"
    await sender.execute("select fenceline.signal_job($1, 'go')", attempt.job_id)
    await maintain(sender)
    await transaction.commit()
    await maintain(sender)
    assert await status(sender, attempt.job_id) == "queued"


async def a_job_that_somebody_holds_is_looked_at_again(connect: Connect) -> None:
    operator, worker = await many(connect, 2)
    attempt = await begun(worker)
    assert await finish(worker, attempt, "waiting") == "accepted"
    transaction = operator.transaction()
    await transaction.start()
    await operator.execute("select fenceline.cancel_job($1)", attempt.job_id)
    await worker.execute("select fenceline.signal_job($1, 'go')", attempt.job_id)
    await maintain(worker)
    assert await status(worker, attempt.job_id) == "waiting"
    await transaction.rollback()
    await maintain(worker)
    assert await status(worker, attempt.job_id) == "queued"


async def held_jobs_do_not_keep_others_from_their_time(connect: Connect) -> None:
    """As many as one look takes are held: those behind them have their turn."""
    operator, worker = await many(connect, 2)
    jobs = [await waiting(worker, 60) for _ in range(3)]
    await maintain(worker)
    for ago, job in zip((3, 2, 1), jobs, strict=True):
        text = "update fenceline.wait set due_at = now() - make_interval(hours => $1) where job_id = $2"
        await worker.execute(text, ago, job)
    await hold_two(operator, worker, jobs)


async def held_jobs_do_not_keep_others_from_their_signals(connect: Connect) -> None:
    """As many as one look takes are held and have news that nobody saw: those behind them have their turn."""
    operator, worker = await many(connect, 2)
    jobs = [await waiting(worker) for _ in range(3)]
    await maintain(worker)
    signals = (
        "insert into fenceline.signal (job_id, id, name, sent_at) select i, 1, 'go', now() from unnest($1::bigint[]) i"
    )
    checks = "insert into fenceline.signal_check (id, job_id) select i, i from unnest($1::bigint[]) i"
    for text in (signals, checks):
        await worker.execute(text, jobs)
    await hold_two(operator, worker, jobs)


async def hold_two(operator: Connection, worker: Connection, jobs: list[int]) -> None:
    transaction = operator.transaction()
    await transaction.start()
    for job in jobs[:2]:
        await operator.execute("select fenceline.cancel_job($1)", job)
    for _ in range(2):
        await worker.execute("select fenceline.resume_waits(2)")
    assert [await status(worker, job) for job in jobs] == ["waiting", "waiting", "queued"]
    await transaction.rollback()
    await worker.execute("select fenceline.resume_waits(2)")
    assert [await status(worker, job) for job in jobs] == ["queued"] * 3


WAIT_SCENARIOS = (
    a_signal_that_commits_after_the_wait_is_heard,
    a_wait_that_commits_after_its_signal_hears_it,
    a_job_that_somebody_holds_is_looked_at_again,
    held_jobs_do_not_keep_others_from_their_time,
    held_jobs_do_not_keep_others_from_their_signals,
)
