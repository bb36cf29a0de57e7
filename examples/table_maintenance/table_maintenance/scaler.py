"""A stand-in for KEDA on one machine: asks `fenceline depth` now and then, and starts a worker per job.

In a cluster this is `deploy/kubernetes/keda-jobs`: the same number, the same command, a pod instead of a process.
"""

import argparse
import asyncio
import signal
import sys
from dataclasses import dataclass, field

from table_maintenance import LANE

FENCELINE = (sys.executable, "-m", "fenceline")
#: Of a worker for one job: content when another one was quicker; tidies up at once when it is told to stop.
WORKER = ("worker", "table_maintenance.jobs:app", "--lanes", LANE, "--once", "--empty-exit", "0", "--grace", "0")


@dataclass
class Scaler:
    max_workers: int = 3
    lease_seconds: float = 30.0
    workers: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def run(self, poll_seconds: float) -> None:
        try:
            while True:
                await self.run_once()
                await asyncio.sleep(poll_seconds)
        finally:
            await self.stop()

    async def run_once(self) -> int:
        """How many workers it started."""
        self.workers = [worker for worker in self.workers if worker.returncode is None]
        wanted = min(await ask_depth(), self.max_workers - len(self.workers))
        for _ in range(wanted):
            # In a session of its own: Ctrl-C is for this program, which tells its workers.
            worker = await asyncio.create_subprocess_exec(
                *FENCELINE, *WORKER, "--lease", str(self.lease_seconds), start_new_session=True
            )
            self.workers.append(worker)
        return wanted

    async def stop(self) -> None:
        living = [worker for worker in self.workers if worker.returncode is None]
        for worker in living:
            worker.terminate()
        await asyncio.gather(*(worker.wait() for worker in living))


async def ask_depth() -> int:
    asked = await asyncio.create_subprocess_exec(
        *FENCELINE, "depth", "--lane", LANE, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    answer, _ = await asked.communicate()
    return int(answer) if asked.returncode == 0 else 0


async def main(poll_seconds: float, scaler: Scaler) -> None:
    """Until SIGTERM or Ctrl-C."""
    running = asyncio.create_task(scaler.run(poll_seconds))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    await asyncio.wait([running])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--poll", type=float, default=30.0, help="seconds between two looks")
    options.add_argument("--max-workers", type=int, default=3)
    options.add_argument("--lease", type=float, default=30.0, help="seconds until a silent worker's job is taken over")
    given = options.parse_args()
    asyncio.run(main(given.poll, Scaler(given.max_workers, given.lease)))
