"""What a running handler writes, on real sessions: the rules that keep it to its attempt."""

import asyncio
import json
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from tests.sql.sessions import (
    Attempt,
    Connect,
    Connection,
    claim_one,
    count,
    enqueue,
    finish,
    many,
    overlap,
    refusal,
    register,
    status,
)

#: Every fenced call of a handler's that is refused when the attempt is gone.
FENCED = {
    "record_step": "select fenceline.record_step($1, $2, 'late', 'hash', '1')",
    "record a failed step": "select fenceline.record_step($1, $2, 'late', 'hash', p_error => '{}')",
    "list_steps_ahead": "select fenceline.list_steps_ahead($1, $2, array['late'])",
    "save_checkpoint": "select fenceline.save_checkpoint($1, $2, '\"late\"')",
    "move_items": "select fenceline.move_items($1, $2, 'completed', array['late'])",
    "add_children": "select fenceline.add_children($1, $2, 'late', array['{}'::json])",
}
TABLES = ("step", "checkpoint", "progress", "phase", "child", "log")


async def claimed(connection: Connection, **options: Any) -> Attempt:
    await enqueue(connection, **options)
    return await claim_one(connection, await register(connection))


async def contents(connection: Connection) -> list[str]:
    return [
        str(
            await connection.fetchval(
                f"select coalesce(string_agg(t::text, '|' order by t::text), '') from fenceline.{t} t"
            )
        )
        for t in (*TABLES, "running", "job")
    ]


async def late_calls_change_nothing(connect: Connect) -> None:
    operator = await connect()
    lost = await register(operator)
    await enqueue(operator)
    old = await claim_one(operator, lost)
    await operator.execute("select fenceline.stop_worker($1)", lost)
    for state in ("queued", "claimed by another", "succeeded"):
        if state == "claimed by another":
            new = await claim_one(operator, await register(operator))
            assert new.job_id == old.job_id
        elif state == "succeeded":
            assert await finish(operator, new) == "accepted"
        before = await contents(operator)
        for name, call in FENCED.items():
            for attempt_id in (old.attempt_id, uuid4()):
                assert await refusal(operator.fetchval(call, old.job_id, attempt_id)) == "FL012", (state, name)
        for attempt_id in (old.attempt_id, uuid4()):
            stale = await operator.fetch(
                "select * from fenceline.report_attempts(array[$1::bigint], array[$2::uuid], $3, $4)",
                old.job_id,
                attempt_id,
                ['[{"message": "late"}]'],
                ['{"phase": "late", "progress": {"done": 9}}'],
            )
            assert [row["attempt_id"] for row in stale] == [attempt_id]
            args = (old.job_id, attempt_id)
            assert await operator.fetchval("select fenceline.set_progress($1, $2, 'late')", *args) is False
            assert await operator.fetchval("select fenceline.write_log($1, $2, '[{}]')", *args) is False
        assert await contents(operator) == before, state


async def a_reclaim_waits_for_a_write_under_way(connect: Connect) -> None:
    for name, call in FENCED.items():
        operator = await connect()
        attempt = await claimed(operator)
        write = partial(_run, sql=call, values=(attempt.job_id, attempt.attempt_id))
        reclaim = partial(_run, sql="select fenceline.cancel_job($1, p_force => true)", values=(attempt.job_id,))
        _, answer, waited = await overlap(connect, write, reclaim)
        assert (answer, waited) == ("cancelled", True), name


async def _run(connection: Connection, sql: str, values: tuple[Any, ...]) -> Any:
    return await connection.fetchval(sql, *values)


async def a_done_step_stays(connect: Connect) -> None:
    operator = await connect()
    attempt = await claimed(operator)
    record = "select fenceline.record_step($1, $2, 'pay', $3, $4, $5)"
    me = (attempt.job_id, attempt.attempt_id)
    assert await operator.fetchval(record, *me, "a", None, '{"message": "no"}') is None
    assert await operator.fetchval(record, *me, "b", '"first"', None) == '"first"', "a failed one runs again"
    assert await operator.fetchval(record, *me, "b", '"second"', None) == '"first"', "a reply was lost"
    assert await operator.fetchval(record, *me, None, '"third"', None) == '"first"', "without a hash, by name"
    assert await operator.fetchval(record, *me, "b", None, '{"message": "late"}') == '"first"'
    assert await refusal(operator.fetchval(record, *me, "c", '"other"', None)) == "FL021"
    [row] = await operator.fetch("select status, result, error from fenceline.list_steps($1)", attempt.job_id)
    assert tuple(row) == ("done", '"first"', None)


async def work_is_handed_on(connect: Connect) -> None:
    operator = await connect()
    attempt = await claimed(operator, max_attempts=2)
    me = (attempt.job_id, attempt.attempt_id)
    await operator.execute("select fenceline.list_steps_ahead($1, $2, array['done', 'failed', 'listed'])", *me)
    await operator.execute("select fenceline.record_step($1, $2, 'done', 'h', '1')", *me)
    await operator.execute("select fenceline.record_step($1, $2, 'failed', 'h', p_error => '{}')", *me)
    await operator.execute("select fenceline.save_checkpoint($1, $2, '{\"row\": 7}')", *me)
    start = "select fenceline.attempt_start($1)"
    assert await finish(operator, attempt, "failed") == "accepted"
    await operator.execute("select fenceline.cancel_job($1)", attempt.job_id)
    again = await operator.fetchval("select job_id from fenceline.retry_job($1)", attempt.job_id)
    for job_id in (attempt.job_id, again):
        found = json.loads(await operator.fetchval(start, job_id))
        assert found["checkpoint"] == {"row": 7}
        assert found["steps"] == {"done": {"args_hash": "h", "result": 1}}, "only what is done"
        rows = await operator.fetch("select name, status from fenceline.list_steps($1)", job_id)
        assert [tuple(row) for row in rows] == [("done", "done"), ("failed", "failed"), ("listed", "listed")]


async def items_are_in_one_set(connect: Connect) -> None:
    operator, *others = await many(connect, 6)
    attempt = await claimed(operator)
    move = "select fenceline.move_items($1, $2, $3, $4, $5)"
    me = (attempt.job_id, attempt.attempt_id)

    async def through(connection: Connection, item: str) -> None:
        for to in ("in_progress", "failed", "in_progress", "skipped", "completed"):
            await connection.execute(move, *me, to, [item], "why")

    await asyncio.gather(*(through(connection, f"i{n}") for n, connection in enumerate(others)))
    progress = json.loads(await operator.fetchval("select progress from fenceline.progress"))
    names = [f"i{n}" for n in range(5)]
    assert sorted(progress["items"].pop("completed")) == names
    assert progress["items"] == {"in_progress": [], "skipped": [], "failed": []}


async def children_come_with_a_good_end_only(connect: Connect) -> None:
    operator = await connect()
    add = "select fenceline.add_children($1, $2, 'child', array['{}'::json, '{}'::json], p_request_id => $3)"
    for outcome, made in (("failed", 0), ("released", 0), ("snoozed", 0), ("cancelled", 0), ("succeeded", 2)):
        attempt = await claimed(operator, max_attempts=9)
        request = uuid4()
        ids = await operator.fetchval(add, attempt.job_id, attempt.attempt_id, request)
        assert await operator.fetchval(add, attempt.job_id, attempt.attempt_id, request) == ids, "a reply was lost"
        assert await count(operator, "job", "kind = 'child'") == 0, "not yet"
        assert await finish(operator, attempt, outcome) == "accepted"
        assert await count(operator, "job", "kind = 'child'") == made, outcome
        assert await count(operator, "child") == 0, outcome
        uses = (
            "select bit_or(coalesce(uses, 0)) & 64 from "
            "(select uses from fenceline.ready union all select uses from fenceline.timer) u"
        )
        assert await operator.fetchval(uses) in (0, None)
        if made:
            assert (
                await operator.fetchval("select array_agg(id order by id) from fenceline.job where kind = 'child'")
                == ids
            )
            parents = "select array_agg(distinct parent) from fenceline.job where kind = 'child'"
            assert await operator.fetchval(parents) == [attempt.job_id]
        elif outcome != "cancelled":
            await operator.execute("select fenceline.cancel_job($1)", attempt.job_id)


async def a_refused_child_leaves_its_parent_as_it_was(connect: Connect) -> None:
    operator = await connect()
    await enqueue(operator, resource_lock="printer", run_at="2999-01-01T00:00:00Z")
    attempt = await claimed(operator)
    add = "select fenceline.add_children($1, $2, 'child', array['{}'::json], $3)"
    await operator.fetchval(add, attempt.job_id, attempt.attempt_id, '{"resource_lock": "printer"}')
    bystander: list[tuple[int, UUID]] = []
    for _ in range(2):
        other = await claimed(operator)
        bystander.append((other.job_id, other.attempt_id))
    pairs = [*bystander, (attempt.job_id, attempt.attempt_id)]
    finish_all = "select * from fenceline.finish_attempts($1, $2)"
    jobs, attempts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert await refusal(operator.fetch(finish_all, jobs, attempts)) == "FL013"
    assert [await status(operator, job) for job in jobs] == ["claimed"] * 3
    assert await finish(operator, attempt, "failed_for_good") == "accepted"
    assert await status(operator, attempt.job_id) == "failed"
    assert await count(operator, "job", "kind = 'child'") == 0


async def a_log_has_an_end(connect: Connect) -> None:
    operator = await connect()
    attempt = await claimed(operator)
    await operator.execute("update fenceline.setting set max_attempt_log_bytes = 1000")
    write = "select fenceline.write_log($1, $2, $3)"
    for _ in range(5):
        lines = json.dumps([{"message": "x" * 80}] * 4)
        assert await operator.fetchval(write, attempt.job_id, attempt.attempt_id, lines) is True
    rows = await operator.fetch("select line, level, message from fenceline.read_log($1)", attempt.job_id)
    assert [row["line"] for row in rows] == list(range(1, len(rows) + 1))
    assert 8 <= len(rows) <= 12
    assert {row["message"] for row in rows[:-1]} == {"x" * 80}
    assert rows[-1]["level"] == "warning"
    assert rows[-1]["message"].startswith("the log of this attempt is over its limit of 1000 bytes")
    assert await finish(operator, attempt, "failed") == "accepted"
    again = await claim_one(operator, await register(operator))
    assert again.job_id == attempt.job_id
    await operator.fetchval(write, again.job_id, again.attempt_id, '[{"message": "new"}]')
    assert await count(operator, "log", f"token = {again.token}") == 1, "the next attempt has room of its own"


CONTEXT_SCENARIOS = (
    late_calls_change_nothing,
    a_reclaim_waits_for_a_write_under_way,
    a_done_step_stays,
    work_is_handed_on,
    items_are_in_one_set,
    children_come_with_a_good_end_only,
    a_refused_child_leaves_its_parent_as_it_was,
    a_log_has_an_end,
)
