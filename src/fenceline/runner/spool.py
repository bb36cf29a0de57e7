"""Sends the endings of attempts to the server, as many at a time as have come together, and keeps them while it is
away.

They are kept in memory. A file would not help: when this process dies its attempts are given back at once by its
helper, or with its lease, and from then on whatever it had to say of them is stale. There are never more than the
runner holds, and while many wait it claims nothing.
"""

import asyncio
import json
import logging
from uuid import UUID

from fenceline.context.attempt import Ending
from fenceline.context.failure import describe
from fenceline.errors import RefusedError, ResourceLocked
from fenceline.runner.client import Client
from fenceline.runner.desk import HttpDesk
from fenceline.worker.settings import Counters

log = logging.getLogger("fenceline.runner")

MOST_IN_BATCH = 500
MOST_BYTES = 1_000_000
#: Until an ending whose finalizer the server could not run is sent again.
FINALIZER_PAUSE_SECONDS = 2.0


class Spool:
    def __init__(self, client: Client, desk: HttpDesk, counters: Counters, changed: asyncio.Event) -> None:
        """`changed` is set when endings were sent, or are stale."""
        self._client = client
        self._desk = desk
        self._counters = counters
        self._waiting: dict[UUID, Ending] = {}
        self._postponed: dict[UUID, Ending] = {}
        self._sending: list[Ending] = []
        self._news = asyncio.Event()
        self._changed = changed

    def add(self, ending: Ending) -> None:
        self._waiting[ending.attempt.attempt_id] = ending
        self._news.set()

    @property
    def held(self) -> list[UUID]:
        """Attempts whose end the server has not heard of."""
        return [*self._waiting, *self._postponed, *(ending.attempt.attempt_id for ending in self._sending)]

    def drop(self, attempt_id: UUID) -> None:
        """The attempt is gone: nobody wants to hear how it ended."""
        for endings in (self._waiting, self._postponed):
            if endings.pop(attempt_id, None) is not None:
                self._counters.stale += 1

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                await self.run_once()

    async def run_once(self) -> None:
        """Send a batch of what has gathered."""
        self._sending = self._take_batch()
        try:
            await asyncio.gather(*(self._report(ending) for ending in self._sending))
            await self._send(self._sending)
        except asyncio.CancelledError:
            # Whoever shuts us down may want to try once more.
            self._waiting |= {ending.attempt.attempt_id: ending for ending in self._sending}
            raise
        finally:
            self._sending = []
            self._changed.set()

    async def flushed(self) -> None:
        """Until the server has heard of everything."""
        while self.held:
            self._changed.clear()
            await self._changed.wait()

    def _take_batch(self) -> list[Ending]:
        batch: list[Ending] = []
        size = 0
        for ending in self._waiting.values():
            size += len(ending.result or "") + len(ending.error or "") + len(ending.errors or "")
            if batch and (len(batch) == MOST_IN_BATCH or size > MOST_BYTES):
                break
            batch.append(ending)
        for ending in batch:
            del self._waiting[ending.attempt.attempt_id]
        return batch

    async def _report(self, ending: Ending) -> None:
        """Lines and progress go before the end: after it they would be stale."""
        report, ending.report = ending.report, None
        try:
            if report is not None:
                await self._desk.report(ending.attempt.job_id, ending.attempt.attempt_id, report)
            else:
                await self._desk.reported(ending.attempt.attempt_id)
        except RefusedError as error:
            log.warning("job %s: lines of its log are lost: %s", ending.attempt.id, error)

    async def _send(self, endings: list[Ending]) -> None:
        crashed = [ending for ending in endings if ending.outcome == "crashed"]
        for ending in crashed:
            await self._send_crashed(ending)
        endings = [ending for ending in endings if ending.outcome != "crashed"]
        if not endings:
            return
        body = f'{{"attempts": [{", ".join(_item(ending) for ending in endings)}]}}'
        try:
            answer = await self._client.ask("POST", "/v1/jobs/finish", body)
        except RefusedError as error:
            if len(endings) > 1:
                # One of them cannot be stored; the others must not suffer for it.
                for ending in endings:
                    await self._send([ending])
            elif endings[0].outcome in ("failed", "failed_for_good"):
                log.error("job %s: not even its failure can be stored: %s", endings[0].attempt.id, error)  # noqa: TRY400 - no bug of ours
                self._close(endings[0], "stale")
            else:
                log.error("job %s: its ending was refused, so it fails: %s", endings[0].attempt.id, error)  # noqa: TRY400 - as above
                # A resource that a child needs may be free the next time; nothing else will fit better then.
                outcome = "failed" if isinstance(error, ResourceLocked) else "failed_for_good"
                failed = Ending(endings[0].attempt, outcome=outcome, error=describe(error, code=error.code))
                await self._send([failed])
            return
        for ending, item in zip(endings, answer["attempts"], strict=True):
            self._close(ending, item["verdict"])

    async def _send_crashed(self, ending: Ending) -> None:
        body = f'{{"status": "crashed", "error": {ending.error or "null"}}}'
        try:
            await self._client.ask(
                "PUT", f"/v1/jobs/{ending.attempt.id}/status", body, attempt_id=ending.attempt.attempt_id
            )
        except RefusedError:
            self._close(ending, "stale")
        else:
            self._close(ending, "accepted")

    def _close(self, ending: Ending, verdict: str) -> None:
        attempt = ending.attempt
        if verdict == "finalizer_missing":
            log.warning("job %s: no server with its finalizer answers, its end is sent again later", attempt.id)
            self._postponed[attempt.attempt_id] = ending
            asyncio.get_running_loop().call_later(FINALIZER_PAUSE_SECONDS, self._resume, attempt.attempt_id)
            return
        if verdict in ("accepted", "already"):
            self._counters.ended[ending.outcome] = self._counters.ended.get(ending.outcome, 0) + 1
        else:
            self._counters.stale += 1
            log.warning("stale_attempt: the ending of attempt %s was refused (%s)", attempt.attempt_id, verdict)
        self._desk.close(attempt.job_id, attempt.attempt_id)

    def _resume(self, attempt_id: UUID) -> None:
        ending = self._postponed.pop(attempt_id, None)
        if ending is not None:
            self.add(ending)


def _item(ending: Ending) -> str:
    status, retry = ("failed", False) if ending.outcome == "failed_for_good" else (ending.outcome, True)
    values = {
        "job": ending.attempt.id, "attempt_id": str(ending.attempt.attempt_id), "status": status, "retry": retry,
        "delay_seconds": ending.delay, "ran_seconds": ending.ran_seconds,
    }  # fmt: skip
    parts = [f'"{name}": {json.dumps(value)}' for name, value in values.items() if value is not None]
    texts = {"result": ending.result, "error": ending.error, "errors": ending.errors}
    parts += [f'"{name}": {text}' for name, text in texts.items() if text is not None]
    return f"{{{', '.join(parts)}}}"
