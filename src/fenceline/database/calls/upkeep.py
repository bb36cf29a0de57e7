"""What keeps a queue going: maintenance, which workers and servers do in turns, and the end of retention."""

from collections.abc import Sequence
from dataclasses import dataclass

from fenceline.database.call import Call, Function, function, rows_of, value_of
from fenceline.database.decoding import Row, json_value, nothing


@dataclass(frozen=True, slots=True)
class Maintained:
    """What a run found: the seconds until the next timer or schedule is due, how many schedules are due now, whether
    tenants have limits, and which parts were held up by somebody's open transaction.
    """

    next_seconds: float | None
    schedules_due: int
    limits_tenants: bool
    blocked: list[str]


def maintain(*, interval_seconds: float) -> Call[Maintained | None]:
    """Do the fleet's maintenance, unless somebody has done it within the interval (None)."""

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
    """Count the unfinished jobs of tenants, unless somebody has done so within the last second."""
    return value_of(function("count_tenants"), nothing, repeatable=True)


def tidy_up(*, interval_seconds: float) -> Call[bool]:
    """Delete what was only to be kept for a while, unless somebody has done so within the interval (False)."""
    return value_of(function("tidy_up", locals()), repeatable=True)


def create_partitions() -> Call[int]:
    return value_of(function("create_partitions"), repeatable=True)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many jobs (None: somebody else is at it), and whether a second call would find more."""

    jobs: int | None
    more: bool


def prune_some(limit: int) -> Call[Forgotten]:
    """By hand; workers do the same in smaller steps."""
    return _forget(function("prune_some", locals()))


def drop_days(limit: int) -> Call[Forgotten]:
    """Drop a day in which everything is past its retention; if it has many logs, only some of them."""
    return _forget(function("drop_days", locals()))


def jobs_to_forget(limit: int) -> Call[list[int]]:
    return value_of(function("jobs_to_forget", locals()), repeatable=True)


def forget_finished(job_ids: list[int], limit: int) -> Call[Forgotten]:
    """Delete those that are past their retention; if they have many log lines, some of those first."""
    return _forget(function("forget_finished", locals()))


def _forget(called: Function) -> Call[Forgotten]:
    return rows_of(called, "forgotten, more", lambda rows: Forgotten(*rows[0]), repeatable=True)
