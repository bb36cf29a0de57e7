"""Sends the endings of attempts, batched as they come.

There is no timer: while one batch is being sent the next one gathers. An ending that comes too late is stale: its
attempt was reclaimed or cancelled, and the job's new holder decides. An ending that has to wait, for an open
transaction (an uncommitted cancel, say) or for a server with its finalizer, is put aside and sent again; the others do
not wait for it. One that is refused becomes a failure, and no refusal ends the loop.

Endings are kept in memory. A file would not help: when this process dies its attempts are given back, at once or when
the lease ends, and from then on their endings are stale.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from fenceline.context.attempt import Attempt, Ending
from fenceline.context.failure import describe
from fenceline.delivery.contract import Delivery, Verdict
from fenceline.engine.statistics import RunStatistics
from fenceline.engine.worker_log import log_endings
from fenceline.errors import DatabaseBusy, FencelineError, RefusedError, ResourceLocked
from fenceline.model.outcome import Outcome

log = logging.getLogger("fenceline.worker")

#: How often endings that were put aside are tried again.
ASIDE_SECONDS = 0.5
OPEN_TRANSACTION = "somebody's open transaction is in the way"


class Finisher:
    def __init__(self, delivery: Delivery, statistics: RunStatistics, *, on_sent: Callable[[], None]) -> None:
        self._delivery = delivery
        self._statistics = statistics
        self._on_sent = on_sent
        self._accepted: list[Ending] = []  # but not logged yet
        self._endings: list[Ending] = []
        self._sending: list[Ending] = []
        self._aside: list[Ending] = []
        self._aside_until = 0.0  # by the monotonic clock
        self._changed = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def add(self, ending: Ending) -> None:
        self._endings.append(ending)
        if not self._changed.is_set():
            self._changed.set()
            self._empty.clear()

    def hand_back(self, attempts: Iterable[Attempt]) -> None:
        """Return attempts that have not started to the queue."""
        for attempt in attempts:
            self.add(Ending(attempt, outcome=Outcome.RELEASED))

    @property
    def unsent(self) -> int:
        """How many endings the database does not know of yet."""
        return len(self._endings) + len(self._aside) + len(self._sending)

    @property
    def held(self) -> list[UUID]:
        """The attempts of these endings."""
        return [ending.attempt.attempt_id for ending in (*self._endings, *self._aside, *self._sending)]

    def drop(self, attempt_id: UUID) -> None:
        """Forget the ending of an attempt that is gone: it would be refused."""
        for endings in (self._endings, self._aside):
            for ending in [ending for ending in endings if ending.attempt.attempt_id == attempt_id]:
                endings.remove(ending)
                self._statistics.note_stale(ending.attempt)

    async def run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ASIDE_SECONDS if self._aside else None):
                    await self._changed.wait()
            await self.run_once()

    async def run_once(self) -> None:
        """Send what has gathered, and retry what was put aside."""
        self._sending, self._endings = self._endings, []
        if self._sending:
            await self._send(self._sending)
        self._sending = []
        if self._aside and time.monotonic() >= self._aside_until:
            await self._send_aside()
        self._on_sent()
        if self._accepted:
            accepted, self._accepted = self._accepted, []
            await log_endings(accepted, self._delivery)
        if not self._endings:
            self._changed.clear()
            if not self._aside:
                self._empty.set()

    async def flushed(self) -> None:
        """Wait until everything added so far is in the database; `run` sends it."""
        await self._empty.wait()

    async def _send(self, endings: Sequence[Ending]) -> None:
        if [e for e in endings if e.report is not None or e.is_written or e.outcome is Outcome.CRASHED]:
            await self._send_special(endings)
        else:  # nearly always
            await self._finish(endings)

    async def _send_special(self, endings: Sequence[Ending]) -> None:
        reports = [(ending.attempt, ending.report) for ending in endings if ending.report is not None]
        if reports:
            try:
                # Lines and progress go before the end: after it they would be stale.
                await self._delivery.report(reports, patient=False)
            except DatabaseBusy:
                await self._send_apart(endings)
                return
            endings = [ending._replace(report=None) for ending in endings]
        plain = []
        for ending in endings:
            if ending.is_written:
                self._note_accepted([ending])
            elif ending.outcome is Outcome.CRASHED:
                await self._finish([ending])
            else:
                plain.append(ending)
        if plain:
            await self._finish(plain)

    async def _finish(self, endings: Sequence[Ending]) -> None:
        first = endings[0]
        try:
            if first.outcome is Outcome.CRASHED:  # it comes alone
                verdicts: Mapping[UUID, Verdict] = {first.attempt.attempt_id: await self._delivery.crash(first)}
            else:
                verdicts = await self._delivery.finish(endings)
        except DatabaseBusy:
            await self._send_apart(endings)
        except Exception as error:  # noqa: BLE001 - see `_must_be_refusal`
            _must_be_refusal(error)
            if len(endings) == 1:
                await self._send_refused(first, error)
                return
            # One of them cannot be stored; the others must not suffer for it.
            for ending in endings:
                await self._finish([ending])
        else:
            self._note_sent(endings, verdicts)

    async def _send_apart(self, endings: Sequence[Ending]) -> None:
        """Another transaction holds something that one of them needs: send the others first."""
        free = await self._put_aside_in_use(endings)
        if len(free) < len(endings):
            if free:
                await self._send(free)
        elif len(free) == 1:
            self._put_aside(free)
        else:
            # The attempts themselves are free, something that their ends touch is not: bisect.
            middle = len(free) // 2
            await self._send(free[:middle])
            await self._send(free[middle:])

    async def _send_aside(self) -> None:
        self._sending, self._aside = self._aside, []
        free = await self._put_aside_in_use(self._sending)
        if free:
            await self._send(free)
        self._sending = []

    async def _put_aside_in_use(self, endings: Sequence[Ending]) -> list[Ending]:
        """Put aside those whose attempts another transaction is changing; returns the others."""
        in_use = await self._delivery.find_in_use([ending.attempt for ending in endings])
        self._put_aside([ending for ending in endings if ending.attempt.attempt_id in in_use])
        return [ending for ending in endings if ending.attempt.attempt_id not in in_use]

    def _put_aside(self, endings: list[Ending], why: str = OPEN_TRANSACTION) -> None:
        if endings:
            self._aside += endings
            self._aside_until = time.monotonic() + ASIDE_SECONDS
            log.warning("%s endings have to wait: %s", len(endings), why)

    def _note_sent(self, endings: Sequence[Ending], verdicts: Mapping[UUID, Verdict]) -> None:
        if not verdicts:  # nearly always
            self._note_accepted(endings)
            return
        later = []
        for ending in endings:
            match verdicts.get(ending.attempt.attempt_id, "accepted"):
                case "stale":
                    self._statistics.note_stale(ending.attempt)
                case "later":
                    later.append(ending)
                case "accepted" | "already":
                    self._note_accepted([ending])
        self._put_aside(later, "no server with the finalizers of their kinds answers")

    def _note_accepted(self, endings: Sequence[Ending]) -> None:
        self._statistics.note_ended(endings)
        self._accepted += endings

    async def _send_refused(self, ending: Ending, error: Exception) -> None:
        """It fails instead; if not even that can be stored, the attempt is given back."""
        log.error("job %s: its ending was refused, so it fails: %s", ending.attempt.id, error)
        # A resource that a child needs may be free the next time; nothing else will fit better then.
        outcome = Outcome.FAILED if isinstance(error, ResourceLocked) else Outcome.FAILED_FOR_GOOD
        code = error.code if isinstance(error, RefusedError) else "error"
        failed = Ending(
            ending.attempt, outcome=outcome, error=describe(error, code=code), ran_seconds=ending.ran_seconds
        )
        for instead in (failed, Ending(ending.attempt, outcome=Outcome.RELEASED)):
            try:
                self._note_sent([instead], await self._delivery.finish([instead]))
            except DatabaseBusy:
                self._put_aside([instead])
            except Exception as again:  # noqa: BLE001 - as above
                _must_be_refusal(again)
                log.error("job %s: not even that can be stored (%s): %s", ending.attempt.id, instead.outcome, again)  # noqa: TRY400 - no bug of ours
                continue
            return
        self._statistics.note_stale(ending.attempt)


def _must_be_refusal(error: Exception) -> None:
    """A refusal concerns one ending. Whatever concerns them all is raised again: a revoked token, a connection that was
    closed for good.
    """
    if isinstance(error, FencelineError) and not isinstance(error, RefusedError):
        raise error
