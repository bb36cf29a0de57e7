"""Feeds all streams of a server, however many, with one listening connection and a few statements a second.

A notification (`fenceline_changed`) says that a followed job has changed; then one statement reads all that have, at
most `LOOKS_PER_SECOND` times a second. Notifications may be lost, so a poll once a second compares a stamp per followed
job and reads those whose stamp is new. Filtered streams read the journal several times a second, without notifications.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from pydantic_core import from_json

from fenceline.database import calls
from fenceline.database.calls.streams import EVERYTHING, FollowedJob, JournalRow, LineText
from fenceline.model.identity import Identity
from fenceline.runtime.alarms import read_ids
from fenceline.runtime.database import Database
from fenceline.server.auth import Authenticator
from fenceline.server.doors import Places
from fenceline.server.problems import Problem
from fenceline.server.subscription import PAGE, FilterStream, JobStream, JournalPage, Position, Stream
from fenceline.server.tenant_turns import TenantDatabase, Turns

log = logging.getLogger("fenceline.server")

POLL_SECONDS = 1.0
LOOKS_PER_SECOND = 40
JOURNAL_SECONDS = 0.25
JOURNAL_PAGE = 250
#: Longest value (args, results) where many jobs are shown, as in lists. A single job's stream has them in full.
MAX_VALUE_BYTES = 16_384
#: How many jobs' states are read at a time.
STATES = 50
#: How long the database considers a job followed; it is renewed in time.
FOLLOW_SECONDS = 60.0
#: How long the journal continues without readers, so that a disconnected client misses nothing.
JOURNAL_LINGER_SECONDS = 120.0
RENEW_SECONDS = 20.0
SETTLE_SECONDS = 2.0
BATCH = 500
LOST = "events were lost: start anew"
LONG_ENOUGH = "open long enough: go on from the last event"


@dataclass(slots=True)
class Topic:
    """A followed job and its clients."""

    after: tuple[int, int]
    stamp: int | None = None
    streams: set[JobStream] = field(default_factory=set)


class Hub:
    """All streams of a server. `authenticator`: while they are open, it checks that their clients still have access."""

    def __init__(
        self, turns: Turns, authenticator: Authenticator, *, streams_per_token: int, stream_seconds: float
    ) -> None:
        self._turns = turns
        self._database = turns.database  # for all clients together; one that asks for itself waits its tenant's turn
        self._authenticator = authenticator
        self._streams_per_token = streams_per_token
        self._stream_seconds = stream_seconds
        self._open: dict[Stream, asyncio.TimerHandle | None] = {}  # each with the timer that closes it
        self._places = Places(inf, streams_per_token)
        self._topics: dict[int, Topic] = {}
        self._filtered: set[FilterStream] = set()
        self._place = 0  # in the journal; counts only while there are filtered streams
        self._new: set[int] = set()
        self._changed: set[int] = set()
        self._wake = asyncio.Event()
        self._anybody = asyncio.Event()
        self._renew_at = self._journal_at = 0.0

    # Clients -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def admitted(self, stream: Stream) -> Iterator[None]:
        """Count a client in, unless the block fails; `drop` counts it out. Raises Problem `limited`."""
        if not self._places.take(_key(stream)):
            raise Problem("limited", f"this token has {self._streams_per_token} streams open: close some first")
        self._open[stream] = None
        self._anybody.set()
        try:
            yield
        except BaseException:
            self.drop(stream)
            raise

    def start(self, stream: Stream) -> None:
        """The client gets its first bytes; its time runs from now on."""
        self._open[stream] = asyncio.get_running_loop().call_later(self._stream_seconds, stream.close, LONG_ENOUGH)

    def drop(self, stream: Stream) -> None:
        """The client is gone. Harmless to repeat."""
        if stream not in self._open:
            return
        timer = self._open.pop(stream)
        if timer is not None:
            timer.cancel()
        if not self._open:
            self._anybody.clear()
        self._places.give_back(_key(stream))
        self.unsubscribe(stream)

    def unsubscribe(self, stream: Stream) -> None:
        """Stop pushing to the client."""
        if isinstance(stream, FilterStream):
            self._filtered.discard(stream)
        elif isinstance(stream, JobStream) and stream.job_id in self._topics:
            topic = self._topics[stream.job_id]
            topic.streams.discard(stream)
            if not topic.streams:
                del self._topics[stream.job_id]

    def close(self) -> None:
        """The server stops; clients reconnect elsewhere or later."""
        for stream in list(self._open):
            stream.close("the server stops")

    @property
    def open_streams(self) -> int:
        return len(self._open)

    # One job -----------------------------------------------------------------------------------------------

    async def look(self, stream: JobStream) -> None:
        """Read a page for a client that catches up at its own pace; it stays behind while there may be more."""
        [seen] = await self._turn_of(stream).call(calls.streams.followed_jobs({stream.job_id: stream.after}, PAGE))
        stream.is_behind = False
        stream.offer(seen)
        stream.is_behind = stream.is_behind or len(seen.lines) == PAGE

    def subscribe(self, stream: JobStream) -> None:
        """Push to the client from now on. If it is behind the job's other clients, the next read starts where it is."""
        topic = self._topics.setdefault(stream.job_id, Topic(stream.after))
        topic.after = min(topic.after, stream.after)
        topic.streams.add(stream)
        self._new.add(stream.job_id)
        self._wake.set()

    def on_notify(self, payload: str) -> None:
        """A notification: ids joined by commas."""
        heard = read_ids(payload) & self._topics.keys()
        if heard:
            self._changed |= heard
            self._wake.set()

    def look_again(self) -> None:
        """The listening connection is new, so notifications may have been lost."""
        self._changed.update(self._topics)
        self._wake.set()

    # Everything --------------------------------------------------------------------------------------------

    async def start_journal(self, stream: FilterStream) -> None:
        """Make sure that everything from now on is written to the journal."""
        database = self._turn_of(stream)
        transaction = await database.call(calls.streams.follow_jobs([EVERYTHING], JOURNAL_LINGER_SECONDS))
        # Transactions that were already writing may not know yet.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                while not await database.call(calls.streams.is_settled(transaction)):  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.02)

    async def begin(self, stream: FilterStream) -> None:
        """Start at the end of the journal."""
        newest = await self._turn_of(stream).call(calls.streams.journal_place(None))
        stream.position = Position(newest or 0)

    async def resume(self, stream: FilterStream, position: Position) -> bool:
        """Start at a position; False if something after it is gone."""
        stream.position = position
        return await self._turn_of(stream).call(calls.streams.journal_place(position.after)) is not None

    async def show(self, stream: FilterStream, job_ids: Sequence[int]) -> AsyncIterator[bytes]:
        """The initial states of jobs, as fast as the client takes them."""
        for start in range(0, len(job_ids), STATES):
            for seen in await self._states(job_ids[start : start + STATES], self._turn_of(stream)):
                if seen.job is None:
                    continue
                while not stream.show(seen, from_json(seen.job)) and not stream.closed:
                    stream.is_behind = False
                    yield stream.take()
        if not stream.is_empty:
            yield stream.take()

    async def catch_up(self, stream: FilterStream) -> None:
        """Read a page of the journal for a client that is behind; once it is not, it is pushed to like the others."""
        stream.is_behind = False
        after = stream.position.after
        if not self._filtered:
            self._place = after
        if self._place <= after:
            self._filtered.add(stream)
            self._wake.set()
            return
        database = self._turn_of(stream)
        rows = await database.call(calls.streams.read_journal(after, JOURNAL_PAGE))
        if not _is_whole(rows, after):
            stream.close(LOST)
            return
        stream.offer(await self._page(rows, database))
        stream.is_behind = True

    async def _page(self, rows: Sequence[JournalRow], database: Database | TenantDatabase) -> JournalPage:
        jobs = {seen.job_id: seen for seen in await self._states(sorted({row.job_id for row in rows}), database)}
        of_lines = [row for row in rows if row.token is not None]
        lines: dict[int, list[LineText]] = {}
        if of_lines:
            lines = await database.call(calls.streams.journal_lines(of_lines))
        return JournalPage(
            rows=rows,
            jobs=jobs,
            attributes={job_id: from_json(seen.job) for job_id, seen in jobs.items() if seen.job is not None},
            lines=lines,
        )

    async def _states(self, job_ids: Sequence[int], database: Database | TenantDatabase) -> list[FollowedJob]:
        found: list[FollowedJob] = []
        for start in range(0, len(job_ids), STATES):
            some = list(job_ids[start : start + STATES])
            found += await database.call(calls.streams.followed_states(some, MAX_VALUE_BYTES))
        return found

    def _turn_of(self, stream: Stream) -> TenantDatabase:
        return self._turns.of(stream.proof.identity.tenant)

    # The loop ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled; failures are retried. Polling runs separately, so that it delays no notification."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat(self._news_or_journal, self.run_once, 1 / LOOKS_PER_SECOND))
            tasks.create_task(self._repeat(self._anybody.wait, self.poll_once, POLL_SECONDS))

    @staticmethod
    async def _repeat(
        rest: Callable[[], Awaitable[object]], act: Callable[[], Awaitable[None]], pause_seconds: float
    ) -> None:
        while True:
            try:
                await rest()
                await act()
            except Exception:
                log.exception("streams: a look at the database failed")
                await asyncio.sleep(POLL_SECONDS)
            await asyncio.sleep(pause_seconds)

    async def _news_or_journal(self) -> None:
        if self._filtered:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._journal_at - time.monotonic())):
                    await self._wake.wait()
        else:
            await self._wake.wait()
        self._wake.clear()

    async def run_once(self) -> None:
        """Follow new jobs, and read what has changed."""
        new, self._new = self._new & self._topics.keys(), set()
        if new:
            try:
                await self._database.call(calls.streams.follow_jobs(list(new), FOLLOW_SECONDS))
            except BaseException:
                self._new |= new
                raise
            self._changed |= new  # they may have changed before notifications began
        changed, self._changed = self._changed, set()
        try:
            await self._read(changed)
        except BaseException:
            self._changed |= changed  # not lost
            raise
        if self._filtered and time.monotonic() >= self._journal_at:
            self._journal_at = time.monotonic() + JOURNAL_SECONDS
            await self._read_journal()

    async def poll_once(self) -> None:
        """Find changes without a notification, close streams that have lost access, renew what is followed."""
        await self._check()
        if self._topics:
            stamps = await self._database.call(calls.streams.followed_stamps(list(self._topics)))
            changed = {
                job_id for job_id, topic in self._topics.items() if stamps.get(job_id) not in (None, topic.stamp)
            }
            if changed:
                self._changed |= changed
                self._wake.set()
        if time.monotonic() >= self._renew_at:
            self._renew_at = time.monotonic() + RENEW_SECONDS
            if self._topics:
                await self._database.call(calls.streams.follow_jobs(list(self._topics), FOLLOW_SECONDS))
            if self._filtered:
                await self._database.call(calls.streams.follow_jobs([EVERYTHING], JOURNAL_LINGER_SECONDS))
                for stream in self._filtered:
                    stream.mark()

    async def _read(self, changed: set[int]) -> None:
        waiting = sorted(changed & self._topics.keys())
        for start in range(0, len(waiting), BATCH):
            after = {
                job_id: self._topics[job_id].after
                for job_id in waiting[start : start + BATCH]
                if job_id in self._topics
            }
            for seen in await self._database.call(calls.streams.followed_jobs(after, PAGE)):
                topic = self._topics.get(seen.job_id)
                if topic is None:
                    continue
                topic.stamp = seen.stamp
                for stream in list(topic.streams):
                    stream.offer(seen)
                    if stream.is_behind:
                        topic.streams.discard(stream)  # it catches up by itself
                if topic.after != after[seen.job_id]:
                    self._changed.add(seen.job_id)  # a client has come that is further behind
                    self._wake.set()
                elif seen.lines:
                    topic.after = (seen.lines[-1].token, seen.lines[-1].line)
                    if len(seen.lines) == PAGE:
                        self._changed.add(seen.job_id)
                        self._wake.set()

    async def _read_journal(self) -> None:
        rows = await self._database.call(calls.streams.read_journal(self._place, JOURNAL_PAGE))
        if not rows:
            return
        if not _is_whole(rows, self._place):
            for stream in list(self._filtered):
                stream.close(LOST)
            self._filtered.clear()
            return
        page = await self._page(rows, self._database)
        self._place = rows[-1].place
        for stream in list(self._filtered):
            stream.offer(page)
            if stream.is_behind:
                self._filtered.discard(stream)  # it catches up by itself
        if len(rows) == JOURNAL_PAGE:
            self._journal_at = 0.0
            self._wake.set()

    async def _check(self) -> None:
        """Close the streams of clients that may not watch any more. One statement for all our tokens and sessions."""
        proofs = {stream: stream.proof for stream in self._open}
        hashes = {proof.token_hash for proof in proofs.values() if proof.token_hash is not None}
        ours = await self._database.call(calls.tokens.identify_all(list(hashes))) if hashes else {}
        foreign: dict[str, Identity] = {}
        for authorization in {proof.authorization for proof in proofs.values() if proof.authorization is not None}:
            with contextlib.suppress(Problem):
                foreign[authorization] = await self._authenticator.identify(authorization)
        for stream, proof in proofs.items():
            if proof.token_hash is not None:
                identity = ours.get(proof.token_hash)
            elif proof.authorization is not None:
                identity = foreign.get(proof.authorization)
            else:  # without authentication
                continue
            if identity != proof.identity:
                stream.close("the token is not valid any more")


def _is_whole(rows: Sequence[JournalRow], after: int) -> bool:
    """Whether no row is missing: the journal keeps only so much, and loses rows when the database crashes."""
    return bool(rows) and rows[0].place == after + 1 and rows[-1].place == after + len(rows)


def _key(stream: Stream) -> tuple[int | None, str, str]:
    identity = stream.proof.identity
    return (identity.token_id, identity.tenant, identity.actor)
