"""The scenarios of `test_crash.py` and `test_shutdown.py` with the rule that they are about taken out: each must fail.

A rule is taken out by an app that patches the worker from inside, or by a broken SQL function.
"""

import pytest
from tests.conftest import Connect
from tests.sql.mutants import MUTANTS
from tests.worker.fleet import Fleet
from tests.worker.test_crash import (
    HEEDLESS,
    block_past_the_lease,
    crash_beside_long_jobs,
    freeze_a_child,
    kill_a_child,
    kill_the_supervisor,
    report_beside_a_held_row,
)
from tests.worker.test_shutdown import stop_with_a_hung_handler

NO_RELEASE = """
from fenceline.worker.lease_keeper import LeaseKeeper
async def nothing(self, *arguments):
    pass
LeaseKeeper.report_crash = nothing
LeaseKeeper.sign_off = nothing
"""

NO_HEARTBEAT = """
from fenceline.worker.lease_keeper import LeaseKeeper
async def nothing(self):
    pass
LeaseKeeper.beat_once = nothing
LeaseKeeper._watch_leases = nothing
"""

ONE_LINE_FOR_ALL = """
from fenceline.delivery.postgres_leases import PostgresLeases
init = PostgresLeases.__init__
def shared(self, connect, answer_seconds):
    init(self, connect, 60.0)  # as long as a report may take
    self._accounts = self._heartbeats
PostgresLeases.__init__ = shared
"""

NO_ISOLATION = """
from fenceline.engine.places import Places
Places.has_isolation = property(lambda self: False, lambda self, value: None)
"""

ORPHANS_LIVE_ON = """
import ctypes
ctypes.CDLL(None).prctl(1, 0)
"""


async def test_without_release_a_killed_child_keeps_its_jobs(fleet: Fleet) -> None:
    fleet.patch(NO_RELEASE)
    with pytest.raises(AssertionError, match="what the killed child held was given back"):
        await kill_a_child(fleet)


async def test_without_a_bond_children_outlive_their_supervisor(fleet: Fleet) -> None:
    fleet.patch(ORPHANS_LIVE_ON)
    with pytest.raises(AssertionError, match="the children ended with their supervisor"):
        await kill_the_supervisor(fleet)


async def test_without_a_connection_of_its_own_a_report_costs_the_siblings_their_leases(
    fleet: Fleet, connect: Connect
) -> None:
    fleet.patch(ONE_LINE_FOR_ALL)
    with pytest.raises(AssertionError, match="could not be renewed"):
        await report_beside_a_held_row(fleet, connect)


async def test_without_processes_of_their_own_suspects_stay_where_they_were(fleet: Fleet) -> None:
    with pytest.raises(AssertionError, match="no suspect runs in a process of its own"):
        await crash_beside_long_jobs(fleet, in_vain=5.0, patch=NO_ISOLATION)


async def test_without_the_fence_a_frozen_child_overwrites(fleet: Fleet) -> None:
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == "finish_without_fence"]
    await fleet.connection.execute(mutant.sql())
    fleet.patch(HEEDLESS)
    with pytest.raises(AssertionError, match="!="):
        await freeze_a_child(fleet)


async def test_without_the_supervisors_heartbeat_a_blocked_process_loses_its_job(fleet: Fleet) -> None:
    fleet.patch(NO_HEARTBEAT + HEEDLESS)
    with pytest.raises(AssertionError, match="lost"):
        await block_past_the_lease(fleet, "block_the_loop_until_released")


async def test_without_release_a_stopped_worker_keeps_its_job(fleet: Fleet) -> None:
    fleet.patch(NO_RELEASE)
    with pytest.raises(AssertionError, match="queued"):
        await stop_with_a_hung_handler(fleet, grace=0.1)
