"""Who enqueued a job: `created_by`, whichever way it was enqueued."""

import getpass
import socket

import pytest

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.errors import InvalidOption

ME = f"{getpass.getuser()}@{socket.gethostname()}"


@pytest.mark.parametrize("given, shown", [(None, ME), ("billing", "billing")])
async def test_every_enqueue_has_an_actor(database: str, given: str | None, shown: str) -> None:
    app = Fenceline(database, actor=given)

    @app.job()
    async def work(n: int = 0) -> None: ...

    jobs = [
        await work.enqueue(),
        await app.enqueue("other"),
        await app.enqueue("other", priority=1),
        *await work.enqueue_many([{"n": 1}, {"n": 2}]),
    ]
    async with app.group() as g:
        jobs += [await g.enqueue(work), await g.then(work)]
    jobs.append(await work.options(actor="ann").enqueue())
    jobs += await work.options(actor="ann").enqueue_many([{}])
    async with app.group(actor="ann") as g:
        jobs.append(await g.enqueue(work))
    creators = [(await job.get()).created_by for job in jobs]
    assert creators == [shown] * 7 + ["ann"] * 3
    await app.close()


async def test_a_retry_and_the_audit_name_the_actor_too(database: str) -> None:
    app = Fenceline(database, actor="billing")
    job = await app.enqueue("work")
    await job.cancel()
    again = await job.retry()
    assert (await again.get()).created_by == "billing"
    assert {event.actor for event in await job.events()} == {"billing"}
    await app.close()


def test_blocking_code_has_an_actor(database: str) -> None:
    app = Fenceline(database)

    @app.job()
    def work() -> None: ...

    jobs = [work.sync.enqueue(), app.sync.enqueue("other"), work.options(actor="ann").sync.enqueue()]
    assert [job.get().created_by for job in jobs] == [ME, ME, "ann"]
    app.sync.close()


async def test_a_user_without_a_name_is_called_by_the_program(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: (_ for _ in ()).throw(KeyError("uid not found")))
    monkeypatch.setattr("sys.argv", ["/usr/bin/importer.py"])
    assert app_parts(Fenceline(database)).actor == "importer.py"


async def test_who_enqueues_a_group_is_said_once(database: str) -> None:
    app = Fenceline(database)
    with pytest.raises(InvalidOption, match="give the actor to"):
        async with app.group() as g:
            await g.enqueue("work", actor="ann")
    await app.close()
