"""Watching jobs over HTTP from Python: the events of `job.watch()`, from a server's streams."""

import asyncio

import pytest
from tests.server.conftest import make_token
from tests.server.live import live_server
from tests.server.worker import Hand
from tests.support.patience import eventually

from fenceline import Fenceline, NotFound, WatchEvent
from fenceline.client.server_events import watch_server
from fenceline.errors import FencelineError
from fenceline.model.public_id import format_id
from fenceline.server.server_settings import ServerSettings

SETTINGS = ServerSettings(maintain=False)


async def test_one_job_to_its_end_and_all_that_match(queue_app: Fenceline, database: str, hand: Hand) -> None:
    token = await make_token(queue_app, "operator")
    with live_server(Fenceline(database), SETTINGS) as url:
        job = await queue_app.enqueue("mail")
        others: list[WatchEvent] = []

        async def watch_all() -> None:
            async for event in watch_server(url, token, kind="mail"):
                others.append(event)  # noqa: PERF401 - looked at below, while it goes on

        async def is_seen_among_all() -> bool:
            return any(event.job and event.job.status == "succeeded" for event in others)

        watching = asyncio.create_task(watch_all())
        seen: list[str] = []
        try:
            async for event in watch_server(url, token, job_id=job.id):
                if event.job is not None:
                    seen.append(str(event.job.status))
                elif event.line is not None:
                    seen.append(event.line.message)
                if seen == ["queued"]:
                    ((_, attempt_id),) = (await hand.claim()).items()
                    await hand.log(job.id, attempt_id, "a line")
                    await hand.finish(job.id, attempt_id)
            assert (seen[0], seen[-2:]) == ("queued", ["a line", "succeeded"])
            await eventually(is_seen_among_all, "its end among all that match", lambda: others)
        finally:
            watching.cancel()
            await asyncio.wait({watching})


async def test_what_the_server_refuses(queue_app: Fenceline, database: str, hand: Hand) -> None:
    token = await make_token(queue_app, "operator")
    with live_server(Fenceline(database), SETTINGS) as url:
        with pytest.raises(NotFound):
            await anext(watch_server(url, token, job_id=format_id(1)))
        with pytest.raises(FencelineError):
            await anext(watch_server(url, "fl_wrong"))
