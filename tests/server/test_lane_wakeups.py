from math import inf

from fenceline.server.lane_wakeups import ReadyLanes


async def test_nobody_waits_once_the_server_stops() -> None:
    lanes = ReadyLanes()
    lanes.close()
    assert await lanes.wait(["mail"], inf) == set()
    await lanes.rest(inf)
