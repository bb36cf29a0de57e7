"""What a lane's rate limit promises, checked by when the database says that jobs were claimed."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime

import psycopg
from tests.support.figures import Figures
from tests.support.patience import eventually
from tests.worker.fleet import Connection

#: Claims per second, and the burst (None: a second's worth).
RATES: tuple[tuple[float, int | None], ...] = ((1, None), (0.5, None), (5, 1), (20, 1))
#: How long the rate is measured, and how long about it takes to run the jobs of a test that does not measure it.
SECONDS = 20.0
FEW_SECONDS = 1.0
#: What comes late is lost to a lane with a small burst. How much does depends on how busy the machine is, so the lanes
#: get at least so much of what a bare client gets that does nothing but wait, beside them.
LEAST = 0.95

Times = Sequence[datetime]


@contextlib.contextmanager
def bare_clients(dsn: str) -> Iterator[list[Times]]:
    """For each rate a client that looks at the database's clock, and then waits until it may again."""
    times: list[list[datetime]] = [[] for _rate in RATES]
    over = threading.Event()

    def look(rate: float, seen: list[datetime]) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while True:
                looked = time.monotonic()
                row = connection.execute("select clock_timestamp()").fetchone()
                assert row is not None
                seen.append(row[0])
                if over.wait(max(0.0, looked + 1 / rate - time.monotonic())):
                    return

    clients = [threading.Thread(target=look, args=(rate, seen)) for (rate, _), seen in zip(RATES, times, strict=True)]
    for client in clients:
        client.start()
    try:
        yield list(times)
    finally:
        over.set()
        for client in clients:
            client.join()


async def fill_lanes(connection: Connection, prefix: str, seconds: float = SECONDS) -> list[str]:
    """Make a lane for each rate, with more jobs than may start in so many seconds; their names."""
    names = []
    for rate, burst in RATES:
        names.append(f"{prefix}-{rate:g}")
        changes = json.dumps({"rate_per_second": rate, "burst": burst})
        await connection.execute("select fenceline.set_lane($1, $2)", names[-1], changes)
        await connection.execute(
            "select job_ids from fenceline.enqueue_many("
            "'work', array_fill(cast('{}' as json), array[cast($1 as integer)]), $2)",
            int(rate * seconds * 1.5) + 2,
            json.dumps({"lane": names[-1]}),
        )
    return names


async def until_all_ran(connection: Connection) -> None:
    seen = -1

    async def none_left() -> bool:
        nonlocal seen
        seen = int(await connection.fetchval("select count(*) from fenceline.jobs where status <> 'succeeded'"))
        return seen == 0

    await eventually(none_left, "every job of the lanes has run", lambda: f"{seen} have not")


async def check_from_above(connection: Connection, names: Sequence[str]) -> None:
    """From each lane's first claim on: in no span more than its rate allows. That holds on any machine."""
    for lane, (rate, burst) in zip(names, RATES, strict=True):
        lowest = 0.0
        for place, second in enumerate(since_first(await claims_of(connection, lane))):
            lowest = min(lowest, place - rate * second)
            above = place + 1 - rate * second - lowest - (burst or max(1, int(rate)))
            # A microsecond is what the database's clock can tell apart.
            assert above <= rate * 2e-6, f"lane {lane}: {above:.6f} too many after {second:.6f} s"


async def check_from_below(
    connection: Connection, names: Sequence[str], bare: Sequence[Times], figures: Figures, seconds: float = SECONDS
) -> None:
    """From each lane's first claim on: its rate for so many seconds. How near it comes is a figure of the machine;
    that no token is lost is `test_the_rate_limit_is_exact_and_the_bucket_holds_the_burst`, with a clock that is set.
    """
    for lane, possible in zip(names, bare, strict=True):
        claims = await claims_of(connection, lane)
        got, could = (sum(1 for second in since_first(times) if second <= seconds) for times in (claims, possible))
        figures.at_least(f"lane {lane}: claims in {seconds:g} s, a bare client {could}", got, LEAST * could, "jobs")


async def claims_of(connection: Connection, lane: str) -> Times:
    rows = await connection.fetch(
        "select h.claimed_at from fenceline.history h join fenceline.job j on j.id = h.job_id "
        "where j.lane = $1 order by 1",
        lane,
    )
    return [row["claimed_at"] for row in rows]


def since_first(times: Times) -> list[float]:
    return [(moment - times[0]).total_seconds() for moment in times]
