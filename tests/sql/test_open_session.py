"""Sessions of people in browsers: how they begin, and when they end."""

from hashlib import sha256

import asyncpg
import pytest
from tests.sql.queue import Queue

SESSION, TOKEN, CODE = (sha256(text).digest() for text in (b"session", b"token", b"code"))
WHO = "select actor, role, tenant from fenceline.identify_session($1)"


async def make_token(queue: Queue) -> int:
    await queue.sql("select fenceline.create_token($1, 'operator', p_tenant => 'acme', p_name => 'ann')", TOKEN)
    found: int = await queue.sql("select id from fenceline.token where hash = $1", TOKEN)
    return found


async def is_open(queue: Queue) -> bool:
    return await queue.sql(f"select exists ({WHO})", SESSION) is True


async def test_a_session_speaks_for_its_token(queue: Queue) -> None:
    await make_token(queue)
    await queue.sql("select fenceline.open_session($1, 3600, p_token => $2)", SESSION, TOKEN)
    assert (
        await queue.sql("select i.actor || ' ' || i.tenant from fenceline.identify_session($1) i", SESSION)
        == "ann acme"
    )
    await queue.call("close_session", SESSION)
    assert not await is_open(queue)


async def test_a_session_ends_after_its_time(queue: Queue) -> None:
    await make_token(queue)
    await queue.sql("select fenceline.open_session($1, 3600, p_token => $2)", SESSION, TOKEN)
    await queue.move_clock(3599)
    assert await is_open(queue)
    await queue.move_clock(1)
    assert not await is_open(queue)


async def test_a_session_ends_with_its_token(queue: Queue) -> None:
    token_id = await make_token(queue)
    await queue.sql("select fenceline.open_session($1, 3600, p_token => $2)", SESSION, TOKEN)
    assert await is_open(queue)
    await queue.call("revoke_token", token_id)
    assert not await is_open(queue)


async def test_a_code_opens_one_session(queue: Queue) -> None:
    await make_token(queue)
    await queue.call("create_login_code", CODE, TOKEN)
    assert await queue.sql("select fenceline.open_session($1, 3600, p_code => $2)", SESSION, CODE) is not None
    await queue.call("close_session", SESSION)
    assert await queue.sql("select fenceline.open_session($1, 3600, p_code => $2)", SESSION, CODE) is None
    assert not await is_open(queue)


async def test_a_code_is_good_for_its_time_only(queue: Queue) -> None:
    await make_token(queue)
    await queue.call("create_login_code", CODE, TOKEN)
    await queue.move_clock(600)
    assert await queue.sql("select fenceline.open_session($1, 3600, p_code => $2)", SESSION, CODE) is None


async def test_a_revoked_token_opens_none(queue: Queue) -> None:
    await queue.call("revoke_token", await make_token(queue))
    assert await queue.sql("select fenceline.open_session($1, 3600, p_token => $2)", SESSION, TOKEN) is None
    assert not await is_open(queue)


async def test_a_token_has_a_hundred_sessions_at_most(queue: Queue) -> None:
    """The oldest ends; whoever else has a session keeps it."""
    await make_token(queue)
    foreign = "select fenceline.open_session($1, 3600, p_actor => $2, p_role => 'viewer', p_tenant => 'acme')"
    await queue.sql(foreign, sha256(b"bob").digest(), "oidc:bob")
    await queue.sql("select fenceline.open_session($1, 3600, p_token => $2)", SESSION, TOKEN)
    count = "select count(*) from fenceline.session where token is not null"
    for n in range(100):
        assert await is_open(queue)
        await queue.move_clock(1)
        await queue.sql("select fenceline.open_session($1, 3600, p_token => $2)", sha256(b"%d" % n).digest(), TOKEN)
    assert not await is_open(queue)
    assert await queue.sql(count) == 100
    for n in range(101):
        await queue.move_clock(1)
        await queue.sql(foreign, sha256(b"eve %d" % n).digest(), "oidc:eve")
    assert await queue.sql("select count(*) from fenceline.session where actor = 'oidc:eve'") == 100
    assert await queue.sql("select count(*) from fenceline.session where actor = 'oidc:bob'") == 1


async def test_a_token_has_a_hundred_unused_codes_at_most(queue: Queue) -> None:
    await make_token(queue)
    make = "select fenceline.create_login_code($1, $2)"
    for n in range(100):
        await queue.sql(make, sha256(b"%d" % n).digest(), TOKEN)
    with pytest.raises(asyncpg.PostgresError, match="100 codes"):
        await queue.sql(make, CODE, TOKEN)
    await queue.sql("select fenceline.open_session($1, 3600, p_code => $2)", SESSION, sha256(b"7").digest())
    await queue.sql(make, CODE, TOKEN)
