"""What a lane's rate limit promises, checked by when the database says that jobs were claimed."""

import json
from collections.abc import Sequence
from datetime import datetime

from tests.worker.fleet import Connection

#: Claims per second, and the burst (None: a second's worth).
RATES: tuple[tuple[float, int | None], ...] = ((1, None), (0.5, None), (5, 1), (20, 1))
SECONDS = 20.0
#: What comes late is lost to a lane with a small burst; at least so much of the rate is claimed all the same.
LEAST = 0.95


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


async def check_lanes(connection: Connection, names: Sequence[str], seconds: float = SECONDS) -> None:
    """From each lane's first claim on: the rate for so many seconds, and in no span more than it allows."""
    for lane, (rate, burst) in zip(names, RATES, strict=True):
        rows = await connection.fetch(
            "select h.claimed_at from fenceline.history h join fenceline.job j on j.id = h.job_id "
            "where j.lane = $1 order by 1",
            lane,
        )
        check_rate(lane, [row["claimed_at"] for row in rows], rate, burst or max(1, int(rate)), seconds)


def check_rate(lane: str, claims: Sequence[datetime], rate: float, burst: int, seconds: float) -> None:
    since_first = [(claimed - claims[0]).total_seconds() for claimed in claims]
    got = sum(1 for second in since_first if second <= seconds)
    assert got >= LEAST * rate * seconds, f"lane {lane}: {got} of {rate * seconds:g} in {seconds:g} s"
    lowest = 0.0
    for place, second in enumerate(since_first):
        lowest = min(lowest, place - rate * second)
        above = place + 1 - rate * second - lowest - burst
        # A microsecond is what the database's clock can tell apart.
        assert above <= rate * 2e-6, f"lane {lane}: {above:.6f} too many after {second:.6f} s"
