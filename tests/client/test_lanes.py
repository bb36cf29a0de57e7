"""Lanes and the system as a whole."""

import pytest
from tests.client.conftest import Worker

from fenceline import Fenceline, NotFound
from fenceline.errors import InvalidLane, LaneInUse, UnknownLane


async def test_the_seeded_lanes(app: Fenceline) -> None:
    lanes = {lane.name: lane for lane in await app.lanes.list()}

    assert lanes.keys() == {"default", "interactive", "maintenance", "system"}
    assert (lanes["default"].slots, lanes["interactive"].slots) == (None, 2)
    assert lanes["interactive"].poll_interval_ms == 2000
    assert lanes["interactive"] == await app.lanes.get("interactive")


async def test_a_lane_from_its_making_to_its_end(app: Fenceline) -> None:
    made = await app.lanes.create("imports", slots=3, kinds=["ingest"], rate_per_second=2.5, actor="ann")
    assert (made.slots, made.kinds, made.rate_per_second, made.enabled) == (3, ["ingest"], 2.5, True)

    changed = await app.lanes.set("imports", slots=None, fair=True)
    assert (changed.slots, changed.fair, changed.kinds) == (None, True, ["ingest"])
    assert (await (await app.enqueue("ingest")).get()).lane == "imports"
    with pytest.raises(LaneInUse):
        await app.lanes.delete("imports")

    await app.lanes.create("empty")
    await app.lanes.delete("empty")
    with pytest.raises(NotFound, match="lane 'empty' does not exist"):
        await app.lanes.get("empty")


async def test_a_drained_lane_accepts_jobs_and_starts_none(app: Fenceline, worker: Worker) -> None:
    assert not (await app.lanes.drain("default")).enabled
    job = await app.enqueue("work")
    assert await worker.claim() == {}

    assert (await app.lanes.resume("default")).enabled
    await worker.start(job)


async def test_set_makes_a_lane_that_is_not_there(app: Fenceline) -> None:
    assert (await app.lanes.set("imports", slots=2)).slots == 2
    assert (await app.lanes.set("imports", slots=3)).slots == 3


async def test_what_is_wrong_with_a_lane_is_said(app: Fenceline) -> None:
    with pytest.raises(UnknownLane, match="nowhere"):
        await app.lanes.drain("nowhere")
    with pytest.raises(InvalidLane):
        await app.lanes.set("default", slots=-1)
    with pytest.raises(InvalidLane, match="colour"):
        await app.lanes.set("default", colour="red")
    with pytest.raises(InvalidLane):
        await app.lanes.create("default")
    with pytest.raises(UnknownLane):
        await app.lanes.delete("nowhere")


async def test_a_lane_shows_what_is_in_it(app: Fenceline, worker: Worker) -> None:
    await app.enqueue("work", lane="interactive")
    await app.enqueue("work", lane="interactive")
    await worker.claim("interactive")
    lane = await app.lanes.get("interactive")

    assert (lane.in_use, lane.depth) == (1, 1)
    assert lane.oldest_age_seconds is not None


async def test_depth_counts_what_could_start_now(app: Fenceline, worker: Worker) -> None:
    assert await app.system.depth() == 0
    await app.enqueue("work")
    await app.enqueue("work", lane="interactive")
    await app.enqueue("work", needs_approval=True)

    assert await app.system.depth() == 2
    assert await app.system.depth("interactive") == 1
    await app.lanes.drain("interactive")
    assert await app.system.depth() == 1
