"""A scheduler as a process of its own, which looks all the time: `python scheduler_process.py DSN`."""

import asyncio
import sys

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.runtime.scheduler import Scheduler


async def main(dsn: str) -> None:
    async with Fenceline(dsn) as app:
        scheduler = Scheduler(app_parts(app).database().call)
        while True:
            await scheduler.run_once()
            await asyncio.sleep(0.002)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
