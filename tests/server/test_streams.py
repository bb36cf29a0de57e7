"""Live streams: the latest state and every log line, resumed without loss, closed with the token."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import make_token
from tests.server.watching import Watcher, Work, serving
from tests.support.patience import come, eventually, seconds_left

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.database.calls.streams import JournalRow
from fenceline.model.identity import Identity
from fenceline.model.public_id import format_id
from fenceline.model.secret import hash_token
from fenceline.runtime.database import Database
from fenceline.server import streams, subscription
from fenceline.server.server_settings import ServerSettings
from fenceline.server.stream_hub import Hub
from fenceline.server.subscription import JournalPage

Watch = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(maintain=False, token_cache_seconds=0.0, streams_per_token=5)


@pytest.fixture
async def url(api: FastAPI) -> AsyncIterator[str]:
    async with serving(api) as url:
        yield url


@pytest.fixture
async def client_as(url: str, queue_app: Fenceline) -> AsyncIterator[Watch]:
    clients: list[httpx.AsyncClient] = []

    async def make(role: str = "operator", **options: Any) -> httpx.AsyncClient:
        token = await make_token(queue_app, role, **options)
        clients.append(
            httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=seconds_left())
        )
        return clients[-1]

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
async def work(connect: Connect) -> Work:
    return await Work.start(await connect())


async def test_a_job_is_shown_to_its_end(client_as: Watch, work: Work) -> None:
    client = await client_as()
    job = await work.enqueue()
    async with Watcher(client, f"/v1/jobs/{job}/stream") as watcher:
        await watcher.until(lambda: watcher.statuses == ["queued"])
        await work.claim()
        await watcher.until(lambda: watcher.statuses == ["queued", "claimed"])
        await work.start_attempt(job)
        await watcher.until(lambda: watcher.statuses[-1] == "running")
        await work.log(job, "a", "b")
        await watcher.until(lambda: watcher.messages == ["a", "b"])
        await work.progress(job, "load", done=1)
        await watcher.until(lambda: bool(watcher.of("progress")))
        await work.log(job, "c")
        await work.finish(job, result={"rows": 3})
        await watcher.until(lambda: watcher.ended)
    assert watcher.statuses == ["queued", "claimed", "running", "succeeded"]
    assert watcher.messages == ["a", "b", "c"]
    assert watcher.of("progress") == [{"id": job, "attempt": 1, "phase": "load", "progress": {"done": 1}}]
    assert watcher.events[-1].data == (await client.get(f"/v1/jobs/{job}")).json()
    assert watcher.of("log")[0].keys() == {"id", "token", "line", "at", "level", "message", "fields"}
    # Coming back after the end, there is nothing to come back for.
    assert (
        await client.get(f"/v1/jobs/{job}/stream", headers={"Last-Event-ID": str(watcher.last_id)})
    ).status_code == 204


async def test_a_job_goes_on_behind_the_last_event_wherever_it_was_cut(client_as: Watch, work: Work) -> None:
    client = await client_as()
    job = await work.enqueue()
    await work.claim()
    await work.log(job, *(f"line {n}" for n in range(1200)))  # more than two pages
    await work.progress(job, "load", done=1)
    await work.finish(job, "failed")
    async with Watcher(client, f"/v1/jobs/{job}/stream") as whole:
        await whole.until(lambda: len(whole.messages) == 1200 and whole.statuses == ["scheduled"])
    assert whole.messages == [f"line {n}" for n in range(1200)]
    last = len(whole.events) - 1
    cuts = (last, 0, 1, 2, 499, 500, 501, 700, last - 1)
    clients = [client, await client_as(name="other")]  # a token may have five open
    async with contextlib.AsyncExitStack() as watching:
        rests = []
        for number, cut in enumerate(cuts):
            watcher = Watcher(clients[number % 2], f"/v1/jobs/{job}/stream", whole.events[cut].id)
            rests.append(await watching.enter_async_context(watcher))
        for cut, rest in zip(cuts, rests, strict=True):
            await rest.until(lambda rest=rest, wanted=last - cut: len(rest.events) >= wanted)  # type: ignore[misc]  # mypy does not infer defaults of a lambda
        # The end is the last event of all: whatever else would have come is there by then.
        assert (await client.post(f"/v1/jobs/{job}/cancel", json={})).status_code == 200
        for rest in rests:
            await rest.until(lambda rest=rest: rest.ended)  # type: ignore[misc]  # as above
    end = rests[0].events  # who had seen everything
    assert [event.event for event in end] == ["progress", "status"]
    assert end[-1].data["status"] == "cancelled"
    for cut, rest in zip(cuts, rests, strict=True):
        assert [event.data for event in rest.events] == [event.data for event in [*whole.events[cut + 1 :], *end]]


async def test_head_of_a_stream_ends(client_as: Watch, work: Work) -> None:
    client = await client_as()
    for path in f"/v1/jobs/{await work.enqueue()}/stream", "/v1/stream":
        for _ in range(6):  # one more than a token may have open
            answer = await client.head(path)
            assert (answer.status_code, answer.content) == (200, b"")
            assert answer.headers["content-type"].startswith("text/event-stream")


async def test_a_finished_job_is_shown_whole(client_as: Watch, work: Work) -> None:
    client = await client_as()
    job = await work.enqueue()
    await work.claim()
    await work.log(job, "only")
    await work.finish(job)
    async with Watcher(client, f"/v1/jobs/{job}/stream") as watcher:
        await watcher.until(lambda: watcher.ended)
    assert [(seen.event) for seen in watcher.events] == ["log", "status"]


async def test_without_notifications_polling_finds_everything(client_as: Watch, work: Work, api: FastAPI) -> None:
    hub: Hub = api.state.server.hub

    async def is_followed() -> bool:
        """What is looked at once more after the beginning is over: from here on only polling finds anything."""
        topics = list(hub._topics.values())
        return bool(topics) and all(topic.stamp is not None for topic in topics) and not hub._new | hub._changed

    await work.connection.execute(
        "create or replace function fenceline.tell_followers(p_job_ids bigint[], p_token bigint default null, "
        "p_first_line integer default null, p_last_line integer default null) returns void language sql as ''"
    )
    client = await client_as()
    job = await work.enqueue()
    async with Watcher(client, f"/v1/jobs/{job}/stream") as watcher:
        await watcher.until(lambda: watcher.statuses == ["queued"])
        await eventually(is_followed, "the job is followed")
        await work.claim()
        await work.log(job, "unheard")
        await watcher.until(lambda: watcher.messages == ["unheard"])
        await work.finish(job)
        await watcher.until(lambda: watcher.ended)


async def test_a_slow_client_reads_on_by_itself_and_nothing_is_kept_for_it(
    client_as: Watch, work: Work, api: FastAPI
) -> None:
    """Small buffers stand for a slow client: it falls behind again and again, and gets every line once."""
    client = await client_as()
    job = await work.enqueue()
    await work.claim()
    async with Watcher(client, f"/v1/jobs/{job}/stream") as watcher:
        await watcher.until(lambda: watcher.statuses == ["claimed"])
        [stream] = api.state.server.hub._open
        stream._most_events = 3
        for batch in range(20):
            await work.log(job, *(f"{batch}.{n}" for n in range(10)))
            assert len(stream._waiting) <= 3
        await work.finish(job)
        await watcher.until(lambda: watcher.ended)
    assert watcher.messages == [f"{batch}.{n}" for batch in range(20) for n in range(10)]
    assert watcher.statuses[-1] == "succeeded"


async def test_revoking_the_token_closes_its_streams_and_no_others(
    client_as: Watch, work: Work, queue_app: Fenceline
) -> None:
    first, other = await client_as(name="first"), await client_as(name="other")
    job = await work.enqueue()
    async with (
        Watcher(first, f"/v1/jobs/{job}/stream") as watcher,
        Watcher(first, "/v1/stream") as filtered,
        Watcher(other, f"/v1/jobs/{job}/stream") as stays,
    ):
        await watcher.until(lambda: watcher.statuses == ["queued"])
        token = first.headers["authorization"].partition(" ")[2]
        identity = await app_parts(queue_app).database().call(calls.tokens.identify_token(hash_token(token)))
        assert identity is not None
        assert identity.token_id is not None
        await (
            app_parts(queue_app)
            .database()
            .call(calls.tokens.revoke_token(identity.token_id, actor="test", tenant=None))
        )
        await watcher.until(lambda: watcher.ended)
        await filtered.until(lambda: filtered.ended)
        await work.claim()
        await stays.until(lambda: stays.statuses == ["queued", "claimed"])
    assert watcher.comments[-1] == "the token is not valid any more"
    assert (await first.get("/v1/stream")).status_code == 401


async def test_streams_per_token_are_limited(client_as: Watch, work: Work) -> None:
    client, other = await client_as(name="a"), await client_as(name="b")
    job = await work.enqueue()
    path = f"/v1/jobs/{job}/stream"

    async def is_admitted() -> bool:
        async with Watcher(client, path) as watcher:
            return watcher.status == 200

    async with contextlib.AsyncExitStack() as watching:
        for _ in range(4):
            await watching.enter_async_context(Watcher(client, path))
        async with Watcher(client, path):
            refused = await client.get(path)
            assert (refused.status_code, refused.json()["code"]) == (429, "limited")
            async with Watcher(other, path) as watcher:
                assert watcher.status == 200
        # The server notices the end of a connection in its own time.
        await eventually(is_admitted, "there is room for a stream again")


async def test_foreign_jobs_are_not_there(client_as: Watch, work: Work) -> None:
    producer = await client_as("producer", name="ann")
    foreigner = await client_as("operator", tenant="acme")
    own = (await producer.post("/v1/jobs", json={"kind": "work"})).json()["id"]
    others = await work.enqueue()
    for client, job in ((producer, others), (foreigner, own), (producer, format_id(1)), (producer, "nonsense")):
        response = await client.get(f"/v1/jobs/{job}/stream")
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
    async with Watcher(producer, f"/v1/jobs/{own}/stream") as watcher:
        await watcher.until(lambda: watcher.statuses == ["queued"])


async def test_a_filtered_stream_shows_what_there_is_and_what_happens(client_as: Watch, work: Work) -> None:
    client = await client_as()
    old = await work.enqueue("a", labels={"project": "x"})
    await work.enqueue("b")
    async with Watcher(client, "/v1/stream?kind=a&label=project:x") as watcher:
        await watcher.until(lambda: len(watcher.events) == 1)
        new = await work.enqueue("a", labels={"project": "x"})
        await work.enqueue("a", labels={"project": "y"})
        await work.claim(limit=10)
        await work.log(new, "one", "two")
        await work.progress(new, "load")
        await work.log(new, "three")
        await work.finish(new)
        await watcher.until(lambda: "succeeded" in watcher.statuses)
    assert {data["id"] for _, data in ((e.event, e.data) for e in watcher.events)} == {old, new}
    assert watcher.messages == ["one", "two", "three"]
    assert watcher.of("status")[-1] == (await client.get(f"/v1/jobs/{new}")).json()


async def test_a_stream_filtered_by_who_enqueued_and_by_a_text_in_the_error(client_as: Watch, work: Work) -> None:
    ann, ben = await client_as(name="ann"), await client_as(name="ben")
    mine, other = [(await client.post("/v1/jobs", json={"kind": "work"})).json()["id"] for client in (ann, ben)]
    async with (
        Watcher(ben, "/v1/stream?created_by=ann") as by_ann,
        Watcher(ben, "/v1/stream?error=the%20BANK&created_by=ann") as broken,
    ):
        await by_ann.until(lambda: by_ann.statuses == ["queued"])
        await work.claim(limit=2)
        for job, message in ((other, "the bank is closed"), (mine, "The Bank is closed")):
            await work.finish(job, "failed_for_good", error={"message": message})
        await by_ann.until(lambda: "failed" in by_ann.statuses)
        await broken.until(lambda: broken.statuses == ["failed"])
    assert {event.data["id"] for event in [*by_ann.events, *broken.events]} == {mine}


async def test_a_filtered_stream_shows_the_end_behind_the_lines(
    client_as: Watch, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the job ends while the page with its first change is being read."""
    client = await client_as()
    job = await work.enqueue("a")
    read = Hub._page
    is_claiming, claimed = False, asyncio.Event()

    async def finish_and_read(hub: Hub, rows: Sequence[JournalRow], database: Database) -> JournalPage:
        if is_claiming:  # the hub may have seen the claim before we have its answer
            await come(claimed, "the answer to the claim")
        if job in work.attempts:
            await work.log(job, "last words")
            await work.finish(job)
        return await read(hub, rows, database)

    monkeypatch.setattr(Hub, "_page", finish_and_read)
    async with Watcher(client, "/v1/stream?kind=a") as watcher:
        await watcher.until(lambda: watcher.statuses == ["queued"])
        is_claiming = True
        await work.claim()
        claimed.set()
        await watcher.until(lambda: "succeeded" in watcher.statuses)
    assert [event.event for event in watcher.events] == ["status", "log", "status"]


async def test_a_filtered_stream_goes_on_behind_the_last_event(client_as: Watch, work: Work) -> None:
    client = await client_as()
    async with Watcher(client, "/v1/stream") as whole:
        jobs = [await work.enqueue() for _ in range(5)]
        await work.claim(limit=5)
        for round_ in range(4):
            for job in jobs:
                await work.log(job, f"{round_} a", f"{round_} b")
        for job in jobs:
            await work.finish(job)
        await whole.until(lambda: whole.statuses.count("succeeded") == 5)
    lines = [(data["id"], data["message"]) for data in whole.of("log")]
    assert sorted(lines) == sorted((job, f"{r} {half}") for job in jobs for r in range(4) for half in "ab")
    for cut in range(0, len(whole.events), 7):
        seen = whole.events[: cut + 1]
        wanted = whole.events[-1].id
        async with Watcher(client, "/v1/stream", whole.events[cut].id) as rest:
            if cut < len(whole.events) - 1:
                await rest.until(lambda rest=rest, wanted=wanted: rest.last_id == wanted)  # type: ignore[misc]  # mypy does not infer defaults of a lambda
        before = [(e.data["id"], e.data["message"]) for e in seen if e.event == "log"]
        after = [(data["id"], data["message"]) for data in rest.of("log")]
        assert before + after == lines  # none lost, none twice


async def test_a_filtered_stream_shows_nothing_of_other_tenants_and_other_peoples_jobs(
    client_as: Watch, work: Work
) -> None:
    acme = await client_as("operator", tenant="acme")
    ann = await client_as("producer", name="ann")
    async with Watcher(acme, "/v1/stream?tenant=default&tenant=acme") as foreign, Watcher(ann, "/v1/stream") as own:
        mine = (await ann.post("/v1/jobs", json={"kind": "work"})).json()["id"]
        theirs = await work.enqueue(tenant="acme")
        await work.enqueue()
        for job in await work.claim(limit=10):
            await work.log(job, "secret")
            await work.finish(job)
        await foreign.until(lambda: "succeeded" in foreign.statuses)
        await own.until(lambda: "succeeded" in own.statuses)
    assert {event.data["id"] for event in foreign.events} == {theirs}
    assert {event.data["id"] for event in own.events} == {mine}


async def test_a_place_in_the_journal_that_is_gone_starts_anew(client_as: Watch, work: Work) -> None:
    client = await client_as()
    async with Watcher(client, "/v1/stream") as watcher:
        job = await work.enqueue()
        await watcher.until(lambda: watcher.statuses == ["queued"])
    await work.connection.execute("delete from fenceline.journal; delete from fenceline.follow")  # as after a crash
    await work.claim()
    async with Watcher(client, "/v1/stream", watcher.last_id) as again:
        await again.until(lambda: again.statuses == ["claimed"])
    assert again.events[0].data["id"] == job


@pytest.mark.parametrize("path", ["/v1/jobs/{job}/stream", "/v1/stream"])
async def test_an_id_that_is_no_event_s_is_refused(client_as: Watch, work: Work, path: str) -> None:
    client = await client_as()
    job = await work.enqueue()
    for nonsense in ("x", "1", "1-2-3", "9" * 50, "1-99999999999-0-0", "1.99999999999"):
        response = await client.get(path.format(job=job), headers={"Last-Event-ID": nonsense})
        assert (response.status_code, response.json()["code"]) == (422, "invalid"), nonsense


async def test_the_buffer_of_a_client_is_bounded() -> None:
    reader = Identity(actor="ann", role="viewer", tenant="default", permissions=frozenset({"jobs:read"}))
    stream = subscription.Stream(subscription.Proof(reader), most_events=10, most_bytes=1000)
    pushed = [stream.push("log", "x" * 300, str(n)) for n in range(100)]
    assert pushed == [True] * 4 + [False] * 96  # over the limit by one event at most
    assert stream.is_behind


async def test_silence_is_broken_by_comments(client_as: Watch, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.05)
    client = await client_as()
    job = await work.enqueue()
    async with Watcher(client, f"/v1/jobs/{job}/stream") as watcher:
        await watcher.until(lambda: len(watcher.comments) >= 3)
    assert watcher.statuses == ["queued"]


async def test_a_token_that_expires_takes_its_streams_along(client_as: Watch, work: Work) -> None:
    client = await client_as(name="brief", expires_at=datetime.now(UTC) + timedelta(days=1))
    job = await work.enqueue()
    async with Watcher(client, f"/v1/jobs/{job}/stream") as watcher:
        await watcher.until(lambda: watcher.statuses == ["queued"])
        await work.connection.execute("update fenceline.token set expires_at = now() where name = 'brief'")
        await watcher.until(lambda: watcher.ended)
    assert watcher.comments[-1] == "the token is not valid any more"
