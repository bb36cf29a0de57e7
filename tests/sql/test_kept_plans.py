"""A session keeps the plans that it made while the queue was nearly empty: they must do for a long one, too."""

import json
from collections.abc import Iterator

import psycopg
import pytest
from tests.sql.full_database import QUIET_SQL, rolled_back, run, touched, usually

FEW, MANY = 5, 20_000
#: The backlog has 280 pages of its own, and its index as many.
PAGES = 100

LANES = {
    "plain": {},
    "fair": {"fair": True},
    "limited": {"slots": 1000},
    "ageing": {"ageing_seconds": 60},
    "sent": {"delivery": "arq"},
}
CALLS = {
    "claim_jobs": "select * from fenceline.claim_jobs(%s, %s, 2)",
    "claim_suspects": "select * from fenceline.claim_jobs(%s, %s, 2, p_alone => true)",
    "claim_for_runner": "select * from fenceline.claim_for_runner(%s, 'me', %s, 2)",
    "runner_lanes": "select * from fenceline.runner_lanes(%s, 'me', array[%s])",
    "worker_lanes": "select l.* from (select %s::integer as id, %s as name) w, fenceline.worker_lanes(null, w.id) l",
    "take_messages": "select m.* from (select %s, %s) w, fenceline.take_messages('arq', p_window => 2) m",
    "messages_due": "select fenceline.messages_due() from (select %s, %s) w",
    "enqueue": """select fenceline.enqueue('work', '{}', '{"key": "one"}') from (select %s, %s) w""",
}


@pytest.fixture
def session(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        run(connection, QUIET_SQL)  # a vacuum would have the plans made anew
        yield connection


@pytest.mark.parametrize(
    "call, lane, tenant",
    [
        *(("claim_jobs", lane, None) for lane in LANES if lane != "sent"),
        ("claim_suspects", "plain", None),
        ("claim_for_runner", "plain", None),
        *(("claim_for_runner", lane, "default") for lane in ("plain", "fair")),
        ("runner_lanes", "plain", None),
        ("runner_lanes", "plain", "default"),
        ("worker_lanes", "plain", None),
        ("take_messages", "sent", None),
        ("messages_due", "sent", None),
        ("enqueue", "plain", None),
    ],
)
def test_a_plan_made_for_few_jobs_does_for_many(
    session: psycopg.Connection, call: str, lane: str, tenant: str | None
) -> None:
    run(session, "select fenceline.set_lane(%s, %s::jsonb)", lane, json.dumps(LANES[lane]))
    register = "select fenceline.register_worker('it', 3600, p_runner => %s, p_tenant => %s, p_owner => 'me')"
    [(worker,)] = run(session, register, "runner" in call, tenant)
    fill(session, lane, FEW)
    for _ in range(6):  # after five, a session may settle on one plan for all values
        with rolled_back(session):
            found = run(session, CALLS[call], worker, lane)
    assert bool(found) is (call != "claim_suspects")
    fill(session, lane, MANY)
    assert usually(session, lambda: touched(session, CALLS[call], worker, lane)) < PAGES


def fill(session: psycopg.Connection, lane: str, count: int) -> None:
    sql = "select fenceline.enqueue_many('work', array_fill('{}'::json, array[%s::integer]), %s::json)"
    run(session, sql, count, json.dumps({"lane": lane}))
