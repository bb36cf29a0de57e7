"""What functions say to the planner."""

from tests.conftest import Connect


async def test_a_function_that_rules_plans_out_is_not_compiled(connect: Connect) -> None:
    """Before PostgreSQL 18 a plan that was ruled out, and is the only one, costs ten billion and is always compiled.

    That takes 0.15 s each time, also for the functions called by such a one: 75 s to forget 500 jobs.
    """
    connection = await connect()
    functions = await connection.fetch(
        """
        select p.proname as name, p.proconfig as settings from pg_proc p
        where p.pronamespace = 'fenceline'::regnamespace and p.proconfig::text like '%enable\\_%'
        """
    )
    assert functions
    assert [function["name"] for function in functions if "jit=off" not in function["settings"]] == []
