"""`assert_enqueued` finds jobs by kind, args and facts, and says what was enqueued instead."""

import pytest

from fenceline.testing import TestedApp


@pytest.fixture
async def jobs(app: TestedApp) -> TestedApp:
    @app.job(lane="interactive")
    async def ingest(path: str, chunk: int = 10) -> None: ...

    await ingest.enqueue(path="a")
    await ingest.options(priority=3).enqueue(path="b", chunk=20)
    await app.enqueue("other", {"x": [1]})
    return app


async def test_it_returns_what_matches_in_order(jobs: TestedApp) -> None:
    found = await jobs.assert_enqueued("ingest", count=2)
    assert [record.args["path"] for record in found] == ["a", "b"]
    [second] = await jobs.assert_enqueued("ingest", args={"chunk": 20})
    assert second.priority == 3
    await jobs.assert_enqueued("ingest", {"path": "a"}, count=1, lane="interactive", status="queued")
    await jobs.assert_enqueued("other", {"x": [1]})


async def test_it_says_what_was_enqueued_instead(jobs: TestedApp) -> None:
    with pytest.raises(AssertionError) as failed:
        await jobs.assert_enqueued("ingest", args={"path": "c"}, priority=3)
    assert str(failed.value).splitlines() == [
        'expected at least one job ingest with args {"path": "c"} priority=3, found 0',
        "what was enqueued instead:",
        '  ingest {"path": "a"} (queued) priority=10',
        '  ingest {"path": "b", "chunk": 20} (queued) priority=3',
    ]
    with pytest.raises(AssertionError) as failed:
        await jobs.assert_enqueued("publish")
    assert '  other {"x": [1]} (queued)' in str(failed.value)


async def test_a_count_is_exact(jobs: TestedApp) -> None:
    for count, said in ((1, "exactly 1"), (3, "exactly 3"), (0, "no")):
        with pytest.raises(AssertionError, match=rf"expected {said} job ingest, found 2\n"):
            await jobs.assert_enqueued("ingest", count=count)
    await jobs.assert_enqueued("publish", count=0)


async def test_a_wrong_name_is_no_silent_match(jobs: TestedApp) -> None:
    with pytest.raises(TypeError, match="a job has no lanes"):
        await jobs.assert_enqueued("ingest", lanes="interactive")


async def test_nothing_at_all(app: TestedApp) -> None:
    with pytest.raises(AssertionError, match="nothing was enqueued at all"):
        await app.assert_enqueued("ingest")
