"""The hash of a configuration: the same for equal ones, however they were written."""

import hashlib
import json
from typing import Any

import pytest
from tests.sql.queue import Queue


async def hash_of(queue: Queue, text: str) -> str:
    return str(await queue.sql("select fenceline.snapshot_hash($1::text::jsonb)", text))


@pytest.mark.parametrize(
    "spellings",
    [
        ['{"a": 1, "b": 2}', '{"b":2,"a":1}', '{"b": 9, "a": 1, "b": 2}'],
        ["1", "1.0", "1.00", "1e0", "10e-1"],
        ["0", "-0", "0.0"],
        ['"\\u00e9"', '"é"'],
        ["[1, 2]", "[1,2]"],
    ],
    ids=str,
)
async def test_equal_configurations_have_equal_hashes(queue: Queue, spellings: list[str]) -> None:
    assert len({await hash_of(queue, text) for text in spellings}) == 1


async def test_different_configurations_have_different_hashes(queue: Queue) -> None:
    texts = ['{"a":1}', '{"a":"1"}', '{"a":null}', "{}", "[]", "null", '""', "false", '{"a":[1]}', '{"a":{"b":1}}',
             "[1,2]", "[2,1]", '["1,2"]', '{"a":1,"b":{}}', '{"a":{"b":{}}}', '{"A":1}']  # fmt: skip
    assert len({await hash_of(queue, text) for text in texts}) == len(texts)


@pytest.mark.parametrize(
    "value",
    [{"z": 1, "a": [True, None, 'x\n"é'], "é": {"b": -2.5, "a": {}}, "B": []}, [], "text", 12345678901234567890],
)
async def test_the_hash_can_be_computed_elsewhere(queue: Queue, value: Any) -> None:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert await queue.call("snapshot_hash", value) == hashlib.sha256(canonical.encode()).hexdigest()


async def test_a_jobs_hash_is_kept_with_its_snapshot(queue: Queue) -> None:
    job = await queue.enqueue(snapshot={"b": None, "a": 1})
    stored = await queue.sql("select snapshot_hash from fenceline.job where id = $1", job)
    assert stored == await hash_of(queue, '{"a": 1, "b": null}')
    assert (await queue.claim_one()).more == {"snapshot": {"a": 1, "b": None}, "snapshot_hash": stored}


async def test_a_deep_snapshot(queue: Queue) -> None:
    job = await queue.sql(
        "select job_id from fenceline.enqueue('work', '{}', json_build_object('snapshot', $1::text::json))",
        "[" * 100 + "]" * 100,
    )
    assert await queue.status(job) == "queued"
