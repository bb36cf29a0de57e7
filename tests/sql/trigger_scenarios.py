"""Incoming webhooks: which paths their maps may have, and triggers that are gone."""

import json

from tests.sql.sessions import Connect, refusal

RECURSIVE = ("$.**.**.zzz", "$.a.**{2}.b", 'strict $."x".** ? (@ > 1)', "$.a ? (exists (@.**.b))", '$."\\"".**')
BOUNDED = ("$.a.*.*[*]", '$."a**b"', '$.a ? (@ != "**")', '$."\\"**"', "$.a * 2")


async def recursive_paths_are_refused(connect: Connect) -> None:
    """When the trigger is made, and when one from before they were refused fires."""
    session = await connect()

    async def create(name: str, path: str) -> None:
        settings = json.dumps({"kind": "build", "map": {"x": path}})
        await session.execute("select fenceline.create_trigger($1, $2, $3, 'default')", name, settings, "s" * 20)

    for path in RECURSIVE:
        assert await refusal(create("refused", path)) == "FL048", path
    for number, path in enumerate(BOUNDED):
        await create(f"bounded{number}", path)
    await create("old", "$.a")
    for path in RECURSIVE:
        await session.execute("update fenceline.trigger set map = $1 where name = 'old'", json.dumps({"x": path}))
        args = session.fetchval("select fenceline.trigger_args('old', 'default', '{}')")
        assert await refusal(args) == "FL048", path


async def a_trigger_that_is_gone_makes_no_args(connect: Connect) -> None:
    session = await connect()
    args = session.fetchval("select fenceline.trigger_args('gone', 'default', '{}')")
    assert await refusal(args) == "FL047"


TRIGGER_SCENARIOS = (recursive_paths_are_refused, a_trigger_that_is_gone_makes_no_args)
