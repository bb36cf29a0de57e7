"""Enqueues of many clients in few transactions.

The commit is the most expensive part of an enqueue. So while some enqueues are under way, those that come meanwhile
gather and go out together as soon as there is a turn: nobody waits for a timer, and nobody is answered before the
commit. If one job makes a batch fail or wait too long, the jobs are sent again one by one.
"""

import asyncio
from collections.abc import Sequence

from fenceline.database.calls.enqueue import Submission, Submitted, submit_job, submit_jobs
from fenceline.errors import DatabaseBusy, RefusedError
from fenceline.server.tenant_turns import Turns

#: Batches under way at a time: one is prepared while another is committed.
TURNS = 2
MAX_JOBS = 64
MAX_BYTES = 1_000_000

Waiting = tuple[Submission, "asyncio.Future[Submitted]"]


class Submitter:
    def __init__(self, turns: Turns) -> None:
        self._database = turns
        self._waiting: list[Waiting] = []
        self._turns: set[asyncio.Task[None]] = set()

    async def submit(self, asked: Submission) -> Submitted:
        """Enqueue a job that cannot wait for another transaction: no dedupe key, idempotency key or resource lock."""
        answer: asyncio.Future[Submitted] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, answer))
        if len(self._turns) < TURNS:
            turn = asyncio.create_task(self._take_turns())
            self._turns.add(turn)
        return await answer

    async def _take_turns(self) -> None:
        while self._waiting:
            batch = self._take_batch()
            if len(batch) == 1:
                await self._send_one(*batch[0])
            else:
                await self._send(batch)
        # Not in a done callback: a job that came before it ran would wait for a turn that is already over.
        self._turns.discard(asyncio.current_task())

    def _take_batch(self) -> list[Waiting]:
        count = size = 0
        for asked, _answer in self._waiting[:MAX_JOBS]:
            size += len(asked.args) + len(asked.options)
            if count and size > MAX_BYTES:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    async def _send(self, batch: Sequence[Waiting]) -> None:
        try:
            made = await self._database.database.call(submit_jobs([asked for asked, _answer in batch]))
        except (RefusedError, DatabaseBusy):
            await asyncio.gather(*(self._send_one(*one) for one in batch))
        except BaseException as error:  # noqa: BLE001 - the waiting requests must get it, whatever it is
            for _asked, answer in batch:
                _settle(answer, error)
        else:
            for (_asked, answer), one in zip(batch, made, strict=True):
                _settle(answer, one)

    async def _send_one(self, asked: Submission, answer: "asyncio.Future[Submitted]") -> None:
        try:
            made = await self._database.of(asked.tenant).call(submit_job(asked, repeatable=False))
            _settle(answer, made)
        except BaseException as error:  # noqa: BLE001 - as above
            _settle(answer, error)


def _settle(answer: "asyncio.Future[Submitted]", value: Submitted | BaseException) -> None:
    if answer.done():
        return  # the client has gone; the job stays
    if isinstance(value, asyncio.CancelledError):
        answer.cancel()
    elif isinstance(value, BaseException):
        answer.set_exception(value)
    else:
        answer.set_result(value)
