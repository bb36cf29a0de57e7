"""Holds what the queue says against a ledger that handlers wrote without it: the invariants L, T, F and P.

L  no job is lost: every job ended, and where it succeeded, its handler really ran to its end
T  at most one terminal write per job
F  no write of a stale attempt was accepted: the attempt that ended a job was the last one claimed, and it did run
P  progress resumes within two leases of any fault
S  no lane is silent for long after a fault is over, while it has jobs
E  no worker ends by itself
"""

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from tests.worker.fleet import Line

#: A busy machine may be late, whatever the queue does.
SLACK_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Ending:
    """A row of the queue's history."""

    job_id: int
    attempt_id: str | None
    token: int | None
    outcome: str
    final: bool


@dataclass(frozen=True, slots=True)
class Broken:
    invariant: str
    what: str


def check(
    job_ids: Sequence[int],
    ledger: Sequence[Line],
    history: Iterable[Ending],
    lease: float,
    faults: Sequence[float] = (),
) -> list[Broken]:
    """What does not hold; nothing, if all is well. `faults`: when each was over."""
    finals: dict[int, list[Ending]] = defaultdict(list)
    claims: dict[int, set[int]] = defaultdict(set)
    for ending in history:
        if ending.final:
            finals[ending.job_id].append(ending)
        if ending.token is not None:
            claims[ending.job_id].add(ending.token)
    started: set[tuple[int, str]] = set()
    ended: set[tuple[int, str]] = set()
    for line in ledger:
        (started if line.word == "start" else ended).add((line.job_id, line.attempt_id))
        claims[line.job_id].add(line.token)

    broken: list[Broken] = []
    for job_id in job_ids:
        if not finals[job_id]:
            broken.append(Broken("L", f"job {job_id} has not ended"))
        if len(finals[job_id]) > 1:
            broken.append(Broken("T", f"job {job_id} has {len(finals[job_id])} terminal writes"))
        for final in finals[job_id]:
            broken += _check_final(final, started, ended, max(claims[job_id], default=None))
    unknown = {line.job_id for line in ledger} - set(job_ids)
    broken += [Broken("L", f"job {job_id} ran and was never enqueued") for job_id in sorted(unknown)]
    gap = longest_gap(ledger, faults)
    if gap > 2 * lease + SLACK_SECONDS:
        broken.append(Broken("P", f"nothing ended for {gap:.1f} s, with leases of {lease} s"))
    return broken


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs of one lane, and when they were enqueued, by the monotonic clock."""

    lane: str
    at: float
    job_ids: Sequence[int]


def longest_silence(ledger: Sequence[Line], batches: Sequence[Batch], over: Sequence[float]) -> float:
    """The longest time from the end of a fault to the next sign of a handler, in any lane that had jobs to do then."""
    longest = 0.0
    last_seen = {line.job_id: line.at for line in sorted(ledger, key=lambda line: line.at)}
    for lane in {batch.lane for batch in batches}:
        mine = [batch for batch in batches if batch.lane == lane]
        ids = {job_id for batch in mine for job_id in batch.job_ids}
        signs = sorted(line.at for line in ledger if line.job_id in ids)
        for moment in over:
            due = [job_id for batch in mine if batch.at <= moment for job_id in batch.job_ids]
            if not any(last_seen.get(job_id, inf) > moment for job_id in due):
                continue
            after = bisect(signs, moment)
            sign = signs[after] if after < len(signs) else inf
            if not any(moment < other < sign for other in over):  # the silence after the last fault is what counts
                longest = max(longest, sign - moment)
    return longest


def _check_final(
    final: Ending, started: set[tuple[int, str]], ended: set[tuple[int, str]], last_token: int | None
) -> list[Broken]:
    broken: list[Broken] = []
    attempt = (final.job_id, final.attempt_id or "")
    if final.outcome == "succeeded" and attempt not in ended:
        broken.append(Broken("L", f"job {final.job_id} succeeded, but its handler did not run to its end"))
    if final.outcome == "succeeded" and attempt not in started:
        broken.append(Broken("F", f"job {final.job_id} was ended by attempt {final.attempt_id}, which never ran"))
    if final.token is not None and final.token != last_token:
        broken.append(Broken("F", f"job {final.job_id} was ended by an attempt that was not the last one claimed"))
    return broken


def longest_gap(ledger: Sequence[Line], faults: Sequence[float] = ()) -> float:
    """The longest time in which no handler came to its end, from the last fault on if there were any in it."""
    if not ledger:
        return 0.0
    times = sorted([min(line.at for line in ledger)] + [line.at for line in ledger if line.word == "end"])
    return max(
        (
            later - max((fault for fault in faults if earlier < fault < later), default=earlier)
            for earlier, later in pairwise(times)
        ),
        default=0.0,
    )
