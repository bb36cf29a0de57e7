"""What keeps a queue going: maintenance, which workers and servers take turns at, and what is past its retention."""

from collections.abc import Sequence
from dataclasses import dataclass

from fenceline.database.call import Call, Function, function, rows_of, value_of
from fenceline.database.decoding import Row, json_value, nothing


@dataclass(frozen=True, slots=True)
class Maintained:
    """That it was our turn, in how many seconds the next timer or schedule is due, how many schedules are now, whether
    tenants have limits, and which parts somebody's open transaction has held up.
    """

    next_seconds: float | None
    schedules_due: int
    limits_tenants: bool
    blocked: list[str]


def maintain(*, interval_seconds: float) -> Call[Maintained | None]:
    """Do the fleet's maintenance unless somebody has within the interval (None)."""

    def decode(rows: Sequence[Row]) -> Maintained | None:
        done = json_value(rows)
        if done is None:
            return None
        blocked = done.get("blocked", [])  # a schema of the version before says nothing of it
        return Maintained(done["next_seconds"], done["schedules_due"], done["limits_tenants"], blocked)

    return value_of(function("maintain", interval_seconds=interval_seconds), decode, repeatable=True)


def sweep() -> Call[int]:
    return value_of(function("sweep"), repeatable=True)


def count_tenants() -> Call[None]:
    """Count the unfinished jobs of tenants, unless somebody has within the last second."""
    return value_of(function("count_tenants"), nothing, repeatable=True)


def tidy_up(*, interval_seconds: float) -> Call[bool]:
    """Forget what only had to be remembered for a while, unless somebody has within the interval (False)."""
    return value_of(function("tidy_up", interval_seconds=interval_seconds), repeatable=True)


def create_partitions() -> Call[int]:
    return value_of(function("create_partitions"), repeatable=True)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many jobs (None: somebody else is at it), and whether the same call again has more to do."""

    jobs: int | None
    more: bool


def prune_some(limit: int) -> Call[Forgotten]:
    """By hand, what workers do by themselves in smaller steps."""
    return _forget(function("prune_some", limit=limit))


def drop_days(limit: int) -> Call[Forgotten]:
    """Drop a day in which everything is past its retention; of a day with many logs, some of them."""
    return _forget(function("drop_days", limit=limit))


def jobs_to_forget(limit: int) -> Call[list[int]]:
    return value_of(function("jobs_to_forget", limit=limit), repeatable=True)


def forget_finished(job_ids: list[int], limit: int) -> Call[Forgotten]:
    """Forget those that are past their retention; of chatty ones, some log lines."""
    return _forget(function("forget_finished", job_ids=job_ids, limit=limit))


def _forget(called: Function) -> Call[Forgotten]:
    return rows_of(called, "forgotten, more", lambda rows: Forgotten(*rows[0]), repeatable=True)
