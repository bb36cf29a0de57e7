"""What is done twice a second for handlers that live longer than a moment: they are announced as started, and their
lines and progress are sent. Each attempt's requests go their own way: a slow one holds up nobody else.
"""

import asyncio
import logging
import time
from functools import partial
from uuid import UUID

from fenceline.errors import RefusedError, StaleAttempt
from fenceline.runner.client import Client
from fenceline.runner.desk import HttpDesk
from fenceline.worker.execution import Execution
from fenceline.worker.executor import Executor

log = logging.getLogger("fenceline.runner")

MOMENT_SECONDS = 0.5


class Moments:
    def __init__(self, executor: Executor, client: Client, desk: HttpDesk) -> None:
        self._executor = executor
        self._client = client
        self._desk = desk
        self._sending: dict[UUID, asyncio.Task[None]] = {}

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(MOMENT_SECONDS)
                self.run_once()
        finally:
            for task in self._sending.values():
                task.cancel()

    def run_once(self) -> None:
        self._executor.end_overdue()
        for attempt_id, execution in self._executor.running.items():
            if attempt_id not in self._sending and (not execution.announced or execution.context.has_report):
                task = asyncio.create_task(self._send(execution))
                self._sending[attempt_id] = task
                task.add_done_callback(partial(self._sent, attempt_id))

    def _sent(self, attempt_id: UUID, _task: "asyncio.Task[None]") -> None:
        del self._sending[attempt_id]

    async def _send(self, execution: Execution) -> None:
        attempt = execution.attempt
        try:
            if not execution.announced:
                execution.announced = True
                ran_seconds = time.perf_counter() - execution.started
                body = f'{{"status": "running", "ran_seconds": {ran_seconds:.6f}}}'
                await self._client.ask("PUT", f"/v1/jobs/{attempt.id}/status", body, attempt_id=attempt.attempt_id)
            if execution.context.has_report:
                report = execution.context.take_report()
                await self._desk.report(attempt.job_id, attempt.attempt_id, report)
        except StaleAttempt:
            self._executor.abandon(attempt.attempt_id)
        except RefusedError as error:
            log.warning("job %s: its start or its progress could not be told: %s", attempt.id, error)
