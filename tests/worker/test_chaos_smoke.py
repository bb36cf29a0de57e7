"""A small storm of faults (`make chaos` for a big one), and proof that its checker can tell."""

from dataclasses import replace
from uuid import uuid4

import pytest
from tests.chaos.checker import SLACK_SECONDS, Batch, Ending, check, longest_silence
from tests.chaos.storm import Report, Storm
from tests.client.proxy import proxied
from tests.support.figures import Figures
from tests.support.patience import seconds_left
from tests.worker.fleet import Fleet, Line

LEASE = 2.0


#: How soon work goes on after a fault: for figures.
TIMED = {"P", "S"}


async def small_storm(fleet: Fleet) -> Report:
    """Nothing is lost and nothing written twice, however slow the machine is."""
    async with proxied(fleet.dsn) as proxy:
        storm = Storm(fleet, seed=4, proxy=proxy)
        # Less than the test may take, so that the report says what has not ended.
        report = await storm.run(jobs=300, faults=12, most_seconds=seconds_left() - 30)
    print(report)  # noqa: T201
    assert [broken for broken in report.broken if broken.invariant not in TIMED] == [], str(report)
    assert report.faults.total() == 12
    assert report.faults["partition"]
    assert report.faults["line cut"]
    assert report.jobs == 300
    return report


async def test_a_small_storm_breaks_nothing(fleet: Fleet) -> None:
    await small_storm(fleet)


@pytest.mark.timing
async def test_how_soon_work_goes_on_after_a_fault(fleet: Fleet, figures: Figures) -> None:
    report = await small_storm(fleet)
    figures.at_most("the longest gap", report.longest_gap, 2 * LEASE + SLACK_SECONDS)
    figures.at_most("the longest silence of a lane", report.longest_silence, 5 + SLACK_SECONDS)


def honest(jobs: int = 3) -> tuple[list[int], list[Line], list[Ending]]:
    """Jobs that were lost once and then succeeded."""
    job_ids = list(range(1, jobs + 1))
    ledger: list[Line] = []
    history: list[Ending] = []
    for job_id in job_ids:
        first, second = str(uuid4()), str(uuid4())
        ledger += [
            Line("start", job_id, first, 1, 10, 1.0),
            Line("start", job_id, second, 2, 11, 2.0),
            Line("end", job_id, second, 2, 11, 3.0),
        ]
        history += [Ending(job_id, first, 1, "lost", False), Ending(job_id, second, 2, "succeeded", True)]
    return job_ids, ledger, history


def invariants(job_ids: list[int], ledger: list[Line], history: list[Ending]) -> set[str]:
    return {broken.invariant for broken in check(job_ids, ledger, history, LEASE)}


def test_an_honest_ledger_passes() -> None:
    assert check(*honest(), LEASE) == []


def test_a_lost_job_is_found() -> None:
    job_ids, ledger, history = honest()
    assert invariants(job_ids, ledger, history[:-1]) == {"L"}
    assert invariants([*job_ids, 99], ledger, history) == {"L"}


def test_a_success_without_work_is_found() -> None:
    job_ids, ledger, history = honest()
    assert invariants(job_ids, ledger[:-1], history) == {"L"}


def test_a_second_terminal_write_is_found() -> None:
    job_ids, ledger, history = honest()
    assert invariants(job_ids, ledger, [*history, history[-1]]) == {"T"}


@pytest.mark.parametrize("knows_claim", [True, False])
def test_a_stale_write_is_found(knows_claim: bool) -> None:  # noqa: FBT001 - a parameter of pytest's
    """The first attempt's write was accepted although the job had been claimed again."""
    job_ids, ledger, history = honest()
    lost, final = history[-2:]
    ledger.append(Line("end", job_ids[-1], str(lost.attempt_id), 1, 10, 2.5))
    forged = [*history[:-2], replace(final, attempt_id=lost.attempt_id, token=1)]
    if knows_claim:
        forged.append(replace(final, final=False, outcome="lost"))
    assert invariants(job_ids, ledger, forged) == {"F"}


def test_a_write_of_an_attempt_that_never_ran_is_found() -> None:
    job_ids, ledger, history = honest()
    forged = [*history[:-1], replace(history[-1], attempt_id=str(uuid4()))]
    assert invariants(job_ids, ledger, forged) == {"F", "L"}


def test_a_standstill_is_found() -> None:
    job_ids, ledger, history = honest()
    late = [*ledger[:-1], replace(ledger[-1], at=100.0)]
    assert invariants(job_ids, late, history) == {"P"}


def test_a_silent_lane_is_found_beside_a_busy_one() -> None:
    ledger = [
        *(Line("end", 1, "a", 1, 10, at / 2) for at in range(40)),
        Line("start", 2, "b", 1, 10, 1.0),
        Line("end", 2, "b", 1, 10, 9.0),
    ]
    batches = [Batch("busy", 0.0, [1]), Batch("silent", 0.5, [2]), Batch("later", 12.0, [3])]
    assert longest_silence(ledger, batches[:1], [2.1]) < 1
    assert longest_silence(ledger, batches[:2], [2.0]) == 7.0
    assert longest_silence(ledger, batches[:2], [9.5]) < 1, "it had nothing to do"
    assert longest_silence(ledger, batches, [13.0]) == float("inf")
