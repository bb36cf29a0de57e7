"""Log lines of a live attempt."""

from typing import Any

from tests.sql.queue import Queue


async def lines(queue: Queue, job: int) -> list[tuple[Any, ...]]:
    return [(row["line"], row["level"], row["message"], row["fields"]) for row in await queue.rows("read_log", job)]


async def test_lines_are_numbered_per_attempt_in_order(queue: Queue) -> None:
    job = await queue.enqueue()
    first = await queue.claim_one()
    assert await queue.call("write_log", job, first.attempt_id, [{"message": "a"}, {"message": "b", "level": "error"}])
    assert await queue.call("write_log", job, first.attempt_id, [{"message": "c", "fields": {"n": 1}}])
    await queue.finish(first, "failed", delay=0)
    second = await queue.claim_one()
    await queue.call("write_log", job, second.attempt_id, [{"message": "d"}])
    assert await lines(queue, job) == [
        (1, "info", "a", None),
        (2, "error", "b", None),
        (3, "info", "c", {"n": 1}),
        (1, "info", "d", None),
    ]
    after = await queue.rows("read_log", job, first.token, 2)
    assert [(row["token"], row["message"]) for row in after] == [(first.token, "c"), (second.token, "d")]
    assert len(await queue.rows("read_log", job, limit=1)) == 1


async def test_the_time_of_a_line_is_the_databases(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("write_log", job, attempt.attempt_id, [{"message": "a", "ago_seconds": 1.5}, {"message": "b"}])
    ago = "select array_agg(extract(epoch from fenceline.clock() - at)::float8 order by line) from fenceline.log"
    assert await queue.sql(ago) == [1.5, 0]


async def test_a_stale_attempt_writes_nothing(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.run(job, "released")
    assert await queue.call("write_log", job, attempt.attempt_id, [{"message": "late"}]) is False
    await queue.claim_one()
    assert await queue.call("write_log", job, attempt.attempt_id, [{"message": "late"}]) is False
    assert await lines(queue, job) == []


async def test_a_long_message_is_cut_by_bytes_and_marked(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    fits, ascii_text, wide = "x" * 8192, "x" * 8193, "€" * 8000
    await queue.call("write_log", job, attempt.attempt_id, [{"message": text} for text in (fits, ascii_text, wide)])
    messages = [line[2] for line in await lines(queue, job)]
    assert messages[0] == fits
    assert messages[1] == "x" * 8192 + " … [cut]"
    assert messages[2].endswith("€ … [cut]")
    assert len(messages[2].encode()) <= 8192 + len(" … [cut]".encode())


async def test_a_line_needs_no_message(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("write_log", job, attempt.attempt_id, [{"fields": {"a": 1}, "ago_seconds": None}])
    assert await lines(queue, job) == [(1, "info", "", {"a": 1})]


async def test_large_fields_and_odd_levels_are_cut(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    given = [{"fields": {"a": "€" * 8000}, "level": "x" * 50}, {"fields": {"a": "x" * 8000}}]
    await queue.call("write_log", job, attempt.attempt_id, given)
    first, second = await lines(queue, job)
    assert first[1] == "x" * 20
    assert list(first[3]) == ["cut"]
    assert first[3]["cut"].startswith('{"a": "€€')
    assert len(first[3]["cut"].encode()) <= 8192
    assert second[3] == {"a": "x" * 8000}
