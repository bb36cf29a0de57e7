"""What operations cost with a million jobs, counted in pages touched: times are noisy, pages are not.

Each test measures in a transaction that it rolls back, several times (see `usually`).
"""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.conftest import create_database, drop_database
from tests.sql import full_database
from tests.sql.full_database import FINISHED, STATISTICS, rolled_back, run, seq_scans, touched, usually

from fenceline.testing.databases import dsn_of

# One process fills the database, which takes minutes on a slow machine, and runs all of these.
pytestmark = [pytest.mark.xdist_group("plans"), pytest.mark.timeout(1800)]

Record = Callable[[object], None]

CLAIM = "select * from fenceline.claim_jobs(%s, %s, 100)"
FINISH = "select * from fenceline.finish_attempts(%s::bigint[], %s::uuid[])"
CLAIM_PAGES = 1500
MESSAGE_PAGES = 3000  # a scan of the lane's backlog touches many times that
NAMED_PAGES = 2500  # each job is looked for by its id, and its message goes
FINISH_PAGES = 2000  # 500 to 1,700: before 17 PostgreSQL descends every index anew for each of the hundred jobs
EXPLAIN_PAGES = 500  # a place in line is counted up to 1000 jobs
UNINDEXED_PAGES = 60_000  # such a page ends after some 60 ms, however little it found
LIST_PAGES = 8000  # a scan of `job` touches 40,000 pages, one of `history` 13,000


@pytest.fixture(scope="module")
def full(server: str, administrator: psycopg.Connection, template: str) -> Iterator[psycopg.Connection]:
    name = f"fenceline_test_{uuid4().hex[:12]}"
    create_database(administrator, name, template=template)
    with psycopg.connect(dsn_of(server, name), autocommit=True) as connection:
        full_database.fill(connection)
        yield connection
    drop_database(administrator, name)


@pytest.fixture(scope="module")
def worker(full: psycopg.Connection) -> int:
    return int(run(full, "select fenceline.register_worker('plans', 86400)")[0][0])


@pytest.fixture(scope="module")
def analysed(full: psycopg.Connection) -> None:
    run(full, STATISTICS["fresh"])


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Record:
    """Keep a figure with the test's result: `pytest --junitxml FILE` writes it down."""
    return lambda pages: request.node.user_properties.append(("pages", pages))


def claim_pages(full: psycopg.Connection, worker: int, lane: str = "default") -> int:
    return usually(full, lambda: touched(full, CLAIM, worker, lane))


def finish_pages(full: psycopg.Connection, worker: int, lane: str = "default") -> int:
    def finish() -> int:
        rows = run(full, CLAIM, worker, lane)
        assert len(rows) == 100
        return touched(full, FINISH, [row[0] for row in rows], [row[1] for row in rows])

    return usually(full, finish)


def list_pages(full: psycopg.Connection, **filters: object) -> tuple[int, list[dict[str, Any]]]:
    """Pages of a list and its jobs; a list never scans `job` or `history` sequentially."""
    named = ", ".join(f"p_{name} => %s" for name in filters)
    sql = f"select jobs from fenceline.list_jobs({named})"
    jobs: list[dict[str, Any]] = run(full, sql, *filters.values())[0][0]
    with rolled_back(full):
        before = seq_scans(full)
        pages = touched(full, sql, *filters.values())
        assert seq_scans(full) == before
    return pages, jobs


def job_number(full: psycopg.Connection, number: int) -> int:
    """The id of the n-th finished job."""
    return int(run(full, "select id from fenceline.job where id & 4194303 = %s", number)[0][0])


@pytest.mark.parametrize("statistics", STATISTICS)
def test_a_claim_among_a_million_touches_few_pages(
    full: psycopg.Connection, worker: int, statistics: str, record: Record
) -> None:
    run(full, STATISTICS[statistics])
    pages = claim_pages(full, worker)
    record(pages)
    assert pages < CLAIM_PAGES


@pytest.mark.parametrize("statistics", STATISTICS)
def test_messages_for_a_backlog_and_their_claim_touch_few_pages(
    full: psycopg.Connection, worker: int, statistics: str, record: Record
) -> None:
    """However long the backlog is: those under way are passed over, a hundred more are sent and claimed."""
    run(full, STATISTICS[statistics])
    take, claim = "select * from fenceline.take_messages('arq', p_window => %s)", "fenceline.claim_named_jobs"
    with rolled_back(full):
        run(full, "update fenceline.lane set delivery = 'arq' where name = 'default'")
        under_way = [row[0] for row in run(full, take, 400)]
        sent = usually(full, lambda: touched(full, take, 500))
        run(full, take, 500)
        [(count,)] = run(full, "select count(*) from fenceline.message")
        named = f"select * from {claim}(%s, 'default', %s)"
        claimed = usually(full, lambda: touched(full, named, worker, under_way[:100]))
    record((sent, claimed))
    assert (len(under_way), count) == (400, 500)
    assert sent < MESSAGE_PAGES
    assert claimed < NAMED_PAGES


@pytest.mark.parametrize("statistics", STATISTICS)
def test_a_claim_of_suspects_passes_over_the_jobs_before_them(
    full: psycopg.Connection, worker: int, statistics: str, record: Record
) -> None:
    """It is asked for beside every other claim while there are any."""
    run(full, STATISTICS[statistics])
    with rolled_back(full):
        run(
            full,
            "update fenceline.ready set deaths = 0 where job_id in "
            "(select job_id from fenceline.ready where lane = 'default' order by priority, seq desc limit 2)",
        )
        claim = "select * from fenceline.claim_jobs(%s, 'default', 2, p_alone => true)"
        pages = usually(full, lambda: touched(full, claim, worker))
        claimed = len(run(full, claim, worker))
    record(pages)
    assert claimed == 2
    assert pages <= CLAIM_PAGES


@pytest.mark.parametrize("statistics", STATISTICS)
def test_jobs_for_an_absent_runner_cost_the_others_little(
    full: psycopg.Connection, worker: int, statistics: str, record: Record
) -> None:
    """Ten thousand ahead of all others."""
    full.execute("vacuum (index_cleanup on) fenceline.ready")  # of those that the test before rolled back
    run(full, STATISTICS[statistics])
    with rolled_back(full):
        run(
            full,
            """
            insert into fenceline.ready (job_id, seq, priority, lane, kind, tenant, uses, runner)
            select -i, i, 32000, 'default', 'common', 'default', 256, '{"name": "away"}'
            from generate_series(1, 10000) i
            """,
        )
        pages = claim_pages(full, worker)
    record(pages)
    assert pages < CLAIM_PAGES


@pytest.fixture(scope="module")
def bound_runner(full: psycopg.Connection) -> int:
    """A runner that gets the jobs of one tenant."""
    sql = "select fenceline.register_worker('runner', 86400, p_runner => true, p_tenant => 'common', p_owner => 'x')"
    return int(run(full, sql)[0][0])


@pytest.mark.parametrize("statistics", STATISTICS)
def test_a_claim_for_one_tenant_touches_few_pages(
    full: psycopg.Connection, bound_runner: int, statistics: str, record: Record
) -> None:
    run(full, STATISTICS[statistics])
    pages = claim_pages(full, bound_runner)
    record(pages)
    assert pages < CLAIM_PAGES


@pytest.mark.parametrize("statistics", STATISTICS)
def test_in_a_fair_lane_the_jobs_of_other_tenants_cost_a_runner_nothing(
    full: psycopg.Connection, bound_runner: int, statistics: str, record: Record
) -> None:
    run(full, STATISTICS[statistics])
    with rolled_back(full):
        run(full, "insert into fenceline.lane (name, fair) values ('shared', true)")
        run(
            full,
            """
            insert into fenceline.ready (job_id, seq, priority, lane, kind, tenant, fair)
            select -i, i, 0, 'shared', 'common', case when i > 100000 then 'common' else 'other' end, true
            from generate_series(1, 100100) i
            """,
        )
        pages = claim_pages(full, bound_runner, "shared")
    record(pages)
    assert pages < CLAIM_PAGES


@pytest.mark.parametrize("statistics", STATISTICS)
def test_a_finish_among_a_million_touches_few_pages(
    full: psycopg.Connection, worker: int, statistics: str, record: Record
) -> None:
    run(full, STATISTICS[statistics])
    pages = finish_pages(full, worker)
    record(pages)
    assert pages < FINISH_PAGES


@pytest.mark.parametrize("statistics", STATISTICS)
def test_the_history_of_one_job_is_found_by_index(full: psycopg.Connection, worker: int, statistics: str) -> None:
    run(full, STATISTICS[statistics])
    job = job_number(full, 500_000)
    [(attempt,)] = run(full, "select attempt_id from fenceline.list_attempts(%s)", job)
    nobody = uuid4()
    asked = [
        ("select verdict from fenceline.finish_attempts(%s, %s)", [job], [attempt], "already"),
        ("select verdict from fenceline.finish_attempts(%s, %s)", [job], [nobody], "stale"),
        ("select verdict from fenceline.finish_as_runner('x', 'common', %s, %s)", [job], [attempt], "forbidden"),
        ("select fenceline.crash_attempt(%s, %s)", job, nobody, "stale"),
        ("select outcome from fenceline.list_attempts(%s) where attempt_id = %s", job, attempt, "succeeded"),
        ("select fenceline.delete_jobs(array[%s]::bigint[], %s::text)", job, "me", 1),
    ]
    for sql, first, second, answer in asked:
        with rolled_back(full):
            before = seq_scans(full)
            assert run(full, sql, first, second) == [(answer,)], sql
            assert seq_scans(full) == before, sql


@pytest.mark.parametrize(
    "status, found",
    [
        ("queued", 50),
        ("claimed", 0),
        ("running", 0),
        ("scheduled", 0),
        ("waiting", 0),
        ("awaiting_approval", 0),
        ("succeeded", 50),
        ("succeeded_with_errors", 50),
        ("failed", 50),
        ("cancelled", 50),
    ],
)
def test_a_list_by_status_is_index_backed(
    full: psycopg.Connection, analysed: None, status: str, found: int, record: Record
) -> None:
    pages, jobs = list_pages(full, statuses=[status])
    record(pages)
    assert {job["status"] for job in jobs} <= {status}
    assert len(jobs) == found
    assert pages < LIST_PAGES


def test_a_list_of_what_succeeded_gets_past_a_block_of_failures(
    full: psycopg.Connection, analysed: None, record: Record
) -> None:
    pages, jobs = list_pages(full, statuses=["succeeded"], cursor=job_number(full, 320_000))
    record(pages)
    assert len(jobs) == 50
    assert pages < LIST_PAGES


@pytest.mark.parametrize("shade", ["common", "usual", "rare_new", "rare_old", "rare_spread", "absent"])
@pytest.mark.parametrize("column", ["kind", "lane", "tenant", "label"])
def test_a_list_by_one_value_is_index_backed(
    full: psycopg.Connection, analysed: None, column: str, shade: str, record: Record
) -> None:
    if column == "label":
        pages, jobs = list_pages(full, labels=json.dumps({"team": shade}))
        assert all(job["labels"] == {"team": shade} for job in jobs)
    else:
        pages, jobs = list_pages(full, **{f"{column}s": [shade]})
        assert all(job[column] == shade for job in jobs)
    record(pages)
    assert len(jobs) == (0 if shade == "absent" else 50)
    assert pages < LIST_PAGES


@pytest.mark.parametrize(
    "filters",
    [
        {"more": {"parent": 7}},
        {"more": {"group": "nightly"}, "tenants": ["usual"]},
        {"created_by": "ann", "tenants": ["usual"]},
        {"more": {"key": "none"}},
        {"more": {"group": "nightly"}},
        {"more": {"worker": "none"}},
        {"more": {"worker": "idle"}},
        {"more": {"worker": "plans"}},
        {"more": {"worker": "plans"}, "statuses": ["failed"], "tenants": ["rare_old"]},
        {"more": {"phase": "none"}},
    ],
    ids=str,
)
def test_a_page_of_what_few_ask_for_is_bounded(
    full: psycopg.Connection, worker: int, analysed: None, filters: dict[str, Any], record: Record
) -> None:
    assert worker == 1  # "plans": all that is finished ended with it
    given = {**filters, "more": json.dumps(filters.get("more"))}
    sql = f"select * from fenceline.page_jobs({', '.join(f'p_{name} => %s' for name in given)})"
    with rolled_back(full):
        run(full, "insert into fenceline.offspring select 7, id from fenceline.job where kind = 'rare_spread' limit 50")
        run(full, "select fenceline.register_worker('idle', 86400)")
        pages = touched(full, sql, *given.values())
    record((filters, pages))
    assert pages < (LIST_PAGES if "more" not in filters or "parent" in filters["more"] else UNINDEXED_PAGES)


def test_pages_by_worker_leave_out_none(full: psycopg.Connection, worker: int, analysed: None) -> None:
    """However many jobs of the worker a window has."""
    page = """select f.job_ids, f.next_cursor from fenceline.filter_jobs(
                null, '{rare_spread}', null, null, null, null, null, null, 20, %s, '{"worker": "plans"}') f"""
    found, cursor = run(full, page, None)[0]
    while cursor is not None:
        ids, cursor = run(full, page, cursor)[0]
        found += ids
    wanted = run(full, "select id from fenceline.job where kind = 'rare_spread' order by id desc")
    assert found == [row[0] for row in wanted]


def test_a_text_in_an_error_is_found_behind_a_million_jobs_without_one(
    full: psycopg.Connection, analysed: None, record: Record
) -> None:
    job = job_number(full, 400_003)  # 600 failed after it, one of a thousand
    page = """fenceline.page_jobs(p_more => '{"error": "broke"}')"""
    sql = f"select jobs::jsonb -> 0 -> 'error' ->> 'code' from {page}"
    with rolled_back(full):
        run(full, """update fenceline.history set error = '{"code": "broken"}' where final and job_id = %s""", job)
        assert run(full, sql) == [("broken",)]
        before = seq_scans(full)
        pages = touched(full, sql)
        assert seq_scans(full) == before
    record(pages)
    assert pages < UNINDEXED_PAGES


@pytest.mark.parametrize("filters", [{"created_before": FINISHED // 5}, {"created_after": FINISHED // 5}, {}])
def test_a_list_by_time_is_index_backed(
    full: psycopg.Connection, analysed: None, filters: dict[str, int], record: Record
) -> None:
    times = {name: run(full, "select fenceline.id_time(%s)", job_number(full, n))[0][0] for name, n in filters.items()}
    pages, jobs = list_pages(full, **times)
    record(pages)
    assert len(jobs) == 50
    assert pages < LIST_PAGES


def test_a_hundred_thousand_jobs_behind_one_key_add_no_scan_to_a_claim(
    full: psycopg.Connection, analysed: None, worker: int, record: Record
) -> None:
    without = claim_pages(full, worker)
    park = """
      with made as (
        insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args, key, key_limit)
        select fenceline.next_id(), 0, 3, 'parked', 'default', 'default', '{}', 'busy', 1
        from generate_series(1, 100000) returning id
      )
      insert into fenceline.held (job_id, seq, priority, lane, kind, tenant, waiting_for, uses, key)
      select id, id, 0, 'default', 'parked', 'default', 'key', 4, 'busy' from made
    """
    with rolled_back(full):
        run(full, park)
        run(full, "insert into fenceline.key_holder (tenant, key, job_id) values ('default', 'busy', 1)")
        parked = claim_pages(full, worker)
        # The worst moment: somebody has just asked for a look at the key.
        run(full, "insert into fenceline.key_check (id, tenant, key) values (fenceline.next_id(), 'default', 'busy')")
        asked = claim_pages(full, worker)
    record((without, parked, asked))
    assert parked <= without + 50
    assert asked <= without + 250


def test_ten_thousand_children_of_a_group_with_a_waiter_add_no_scan_to_a_claim(
    full: psycopg.Connection, analysed: None, worker: int, record: Record
) -> None:
    without = claim_pages(full, worker), finish_pages(full, worker)
    with rolled_back(full):
        run(full, "insert into fenceline.lane (name) values ('family')")
        children = "select fenceline.enqueue_many('child', array_fill('{}'::json, array[10000]), %s::json)"
        run(full, children, json.dumps({"group": "children", "lane": "family"}))
        waiter = "select fenceline.enqueue('parent', '{}', %s::json)"
        run(full, waiter, json.dumps({"after": {"group": "children"}}))
        assert run(full, "select count(*) from fenceline.dependency")[0][0] == 10_000
        claimed = claim_pages(full, worker)
        rows = run(full, CLAIM, worker, "family")
        finished = touched(full, FINISH, [row[0] for row in rows], [row[1] for row in rows])
    record((without, claimed, finished))
    assert claimed <= without[0] + 50
    # Each child is taken off the waiter's list, a few pages of index each; the waiter is touched once.
    assert finished <= without[1] + 1000


def test_the_view_of_active_jobs_does_not_touch_history(full: psycopg.Connection, analysed: None) -> None:
    def relations(statuses: str) -> set[str]:
        rows = run(full, f"explain (format json) select * from fenceline.jobs where status in ({statuses})")
        found: set[str] = set()

        def walk(node: dict[str, Any]) -> None:
            found.add(node.get("Relation Name", ""))
            for child in node.get("Plans", []):
                walk(child)

        walk(rows[0][0][0]["Plan"])
        return found

    assert any(name.startswith("history") for name in relations("'failed'"))
    active = relations("'queued', 'claimed', 'running'")
    assert {"ready", "running"} <= active
    assert not any(name.startswith("history") for name in active)


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_why_a_job_waits_among_a_million_is_found_by_index(
    full: psycopg.Connection, worker: int, place: str, record: Record
) -> None:
    order = {"first": "seq limit 1", "middle": "seq offset 500000 limit 1", "last": "seq desc limit 1"}[place]
    job = run(full, f"select job_id from fenceline.ready where lane = 'default' order by priority desc, {order}")[0][0]
    pages = usually(full, lambda: touched(full, "select fenceline.explain_job(%s, 'common')", job))
    record(pages)
    assert pages <= EXPLAIN_PAGES


def test_floors_spare_a_claim_the_dead_entries_that_a_long_transaction_pins(
    server: str, full: psycopg.Connection, worker: int, record: Record
) -> None:
    run(full, "insert into fenceline.lane (name) values ('pinned')")
    # A lane's rows lie anywhere in the heap once vacuum has handed out its pages again.
    run(
        full,
        """
        insert into fenceline.ready (job_id, seq, priority, lane, kind, tenant)
        select -i, i, 0, 'pinned', 'common', 'common' from generate_series(1, 50200) i order by hashint8(i)
        """,
    )
    with psycopg.connect(dsn_of(server, full.info.dbname)) as pinning:
        run(pinning, "set transaction isolation level repeatable read")
        run(pinning, "select 1")
        run(full, "delete from fenceline.ready where lane = 'pinned' and seq <= 50000")
        without_floors = claim_pages(full, worker, "pinned")
        sql = """
          select * from fenceline.claim_jobs(%s, 'pinned', 100, p_floor_priorities => array[0]::smallint[],
                                             p_floor_seqs => array[50001]::bigint[])
        """
        scanned = "insert into fenceline.lane_scan (lane, kinds, scanned_at) values ('pinned', 0, clock_timestamp())"
        with rolled_back(full):
            run(full, scanned)
            with_floors = usually(full, lambda: touched(full, sql, worker))
    record((without_floors, with_floors))
    assert with_floors < CLAIM_PAGES
    assert without_floors > 20 * with_floors
