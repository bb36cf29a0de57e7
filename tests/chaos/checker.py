"""Holds what the queue says against a ledger that handlers wrote without it: the invariants L, T, F and P.

L  no job is lost: every job ended, and where it succeeded, its handler really ran to its end
T  at most one terminal write per job
F  no write of a stale attempt was accepted: the attempt that ended a job was the last one claimed, and it did run
P  progress resumes within two leases of any fault
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

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


def check(job_ids: Sequence[int], ledger: Sequence[Line], history: Iterable[Ending], lease: float) -> list[Broken]:
    """What does not hold; nothing, if all is well."""
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
    gap = longest_gap(ledger)
    if gap > 2 * lease + SLACK_SECONDS:
        broken.append(Broken("P", f"nothing ended for {gap:.1f} s, with leases of {lease} s"))
    return broken


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


def longest_gap(ledger: Sequence[Line]) -> float:
    """The longest time in which no handler came to its end."""
    if not ledger:
        return 0.0
    times = sorted([min(line.at for line in ledger)] + [line.at for line in ledger if line.word == "end"])
    return max((later - earlier for earlier, later in pairwise(times)), default=0.0)
