"""A test that has never been seen failing proves little: every mutant must be caught by the scenario that it names,
and the same scenario must pass on the functions as they are.
"""

import asyncio
from collections.abc import Callable

import asyncpg
import psycopg
import pytest
from tests.sql.machine import run_machine
from tests.sql.mutants import MUTANTS
from tests.sql.mutation import Judge, Mutant
from tests.sql.open_machine import run_open_machine
from tests.sql.sessions import sessions
from tests.support.patience import seconds_left

EXAMPLES = 80  # of the state machine: enough to catch the mutants that are left to it
STORMS = 40  # of open transactions: the same

CloneDatabase = Callable[[], str]


async def run(dsn: str, scenario: Judge) -> None:
    if scenario is None:
        await asyncio.to_thread(run_machine, dsn, examples=EXAMPLES, shrink=False)
        return
    if isinstance(scenario, str):
        await asyncio.to_thread(run_open_machine, dsn, storms=STORMS)
        return
    async with sessions(dsn) as connect, asyncio.timeout(seconds_left()):
        await scenario(connect)


def scenario_name(mutant: Mutant) -> str:
    match mutant.caught_by:
        case None:
            return "state_machine"
        case str() as machine:
            return machine
        case scenario:
            return scenario.__name__


@pytest.fixture(scope="module")
def passed_on_the_original() -> set[str]:
    return set()


@pytest.mark.parametrize(
    "mutant",
    # Those of a scenario run in one process, so that it is tried on the original once.
    [pytest.param(mutant, marks=pytest.mark.xdist_group(scenario_name(mutant))) for mutant in MUTANTS],
    ids=lambda mutant: mutant.name,
)
async def test_mutant_is_caught(
    mutant: Mutant,
    clone_database: CloneDatabase,
    passed_on_the_original: set[str],
    record_property: Callable[[str, object], None],
) -> None:
    name = scenario_name(mutant)
    if name not in passed_on_the_original:
        # Some wait until all older transactions have ended, those of tests beside them included.
        await run(clone_database(), mutant.caught_by)
        passed_on_the_original.add(name)

    broken = clone_database()
    with psycopg.connect(broken, autocommit=True) as connection:
        connection.execute(mutant.sql().encode())
    try:
        await run(broken, mutant.caught_by)
    except (AssertionError, asyncpg.PostgresError, psycopg.Error) as failure:
        record_property("mutant", (mutant.name, mutant.function, name, type(failure).__name__))
    else:
        pytest.fail(f"{name} passes although {mutant.function} is broken: {mutant.name}")


def test_mutant_of_a_changed_function_is_refused() -> None:
    rotten = Mutant("rotten", "settle", (("no such text", ""),), None)
    with pytest.raises(ValueError, match=r"settle\.sql has 0 times, not once: no such text"):
        rotten.sql()


def test_mutants_have_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 10
