"""Watching jobs: the events of the server's streams, straight from the database.

They give the latest state of a job and every log line: states may be skipped, lines never are. Who may read a job may
watch it; watching all jobs reads the journal, which needs the database role fenceline_admin.

`scripts/generate_sync.py` makes `sync_watching.py` of it, so it goes through a `Database` and awaits nothing else.
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace

from fenceline.client.verbs import Verbs
from fenceline.database import calls
from fenceline.database.calls.streams import EVERYTHING, FollowedJob, JournalRow
from fenceline.database.decoding import read_record
from fenceline.errors import NotFound
from fenceline.model.job import JobFilter, JobRecord, LogLine
from fenceline.model.public_id import format_id, parse_id
from fenceline.model.records import WatchEvent
from fenceline.runtime.database import GetDatabase

LOOK_SECONDS = 0.25
FOLLOW_SECONDS = 60.0
RENEW_LOOKS = 80  # about every 20 seconds
SETTLE_LOOKS = 8
LINES = 1000
ROWS = 1000
#: How many of the newest matching jobs are shown first.
SHOWN_FIRST = 100
NO_LINES = (2**62, 0)
#: How many jobs it remembers the last state of, so as not to report it twice.
REMEMBERED = 10_000


async def watch_job(get_database: GetDatabase, job_id: int) -> AsyncIterator[WatchEvent]:
    """One job, from its current state and all its log lines until its end. Raises NotFound."""
    before: JobRecord | None = None
    place = (0, 0)
    while True:
        # In this order: what an attempt logs is stored before its end, so no line is missed after the end.
        job = await get_database().call(calls.jobs.describe_job(job_id))
        if job is None:
            raise NotFound(f"job {format_id(job_id)} does not exist")
        state = list(_changes(before, job))
        if not job.status.is_final:
            for event in state:
                yield event
        while True:
            lines = await get_database().call(calls.job_records.read_log(job_id, after=place, limit=LINES))
            for line in lines:
                place = (line.token, line.line)
                yield WatchEvent(event="log", id=job.id, line=line)
            if len(lines) < LINES:
                break
        if job.status.is_final:
            for event in reversed(state):
                yield event
            return
        before = job
        await get_database().pause(LOOK_SECONDS)


async def watch_jobs(get_database: GetDatabase, which: JobFilter) -> AsyncIterator[WatchEvent]:
    """Every job that matches: first the newest as they are, then whatever happens. It has no end."""
    reader = Journal(get_database, which)
    while True:
        for event in await reader.read():
            yield event
        await get_database().pause(reader.pause_seconds)


class Journal(Verbs):
    """Reads what happens in the queue, from its first look on."""

    def __init__(self, get_database: GetDatabase, which: JobFilter) -> None:
        super().__init__(get_database)
        self._which = which
        self._versions: dict[int, tuple[int, int]] = {}
        self._place: int | None = None
        self._looks = 0
        self._transaction = ""
        self.pause_seconds = 0.0

    async def read(self) -> list[WatchEvent]:
        """What is new."""
        if self._looks % RENEW_LOOKS == 0:
            self._transaction = await self._call(calls.streams.follow_jobs([EVERYTHING], FOLLOW_SECONDS))
        self._looks += 1
        if self._place is None or await self._call(calls.streams.journal_place(self._place)) is None:
            return await self._begin()
        rows = await self._call(calls.streams.read_journal(self._place, ROWS))
        self.pause_seconds = 0.0 if len(rows) == ROWS else LOOK_SECONDS
        if not rows:
            return []
        self._place = rows[-1].place
        return await self._to_events(rows)

    async def _begin(self) -> list[WatchEvent]:
        """At the start, or after a gap. Transactions under way must end first: their changes may go unannounced."""
        for _ in range(SETTLE_LOOKS):
            if await self._call(calls.streams.is_settled(self._transaction)):
                break
            await self._get_database().pause(LOOK_SECONDS)
        self._place = await self._call(calls.streams.journal_place(None)) or 0
        page = await self._call(calls.jobs.page_jobs(self._which, limit=SHOWN_FIRST, cursor=None))
        newest = dict.fromkeys((parse_id(job.id) for job in page.items), NO_LINES)
        return [
            event for seen in await self._call(calls.streams.followed_jobs(newest, 1)) for event in self._state(seen)
        ]

    async def _to_events(self, rows: Sequence[JournalRow]) -> list[WatchEvent]:
        ids = dict.fromkeys((row.job_id for row in rows), NO_LINES)
        jobs = {seen.job_id: seen for seen in await self._call(calls.streams.followed_jobs(ids, 1))}
        logged = [row for row in rows if row.token is not None]
        lines = await self._call(calls.streams.journal_lines(logged)) if logged else {}
        events: list[WatchEvent] = []
        for row in rows:
            seen = jobs[row.job_id]
            if row.token is None:
                events += self._state(seen)
            elif seen.job is not None and self._which.matches(json.loads(seen.job)):
                read = (read_record(LogLine, json.loads(line.text)) for line in lines.get(row.place, ()))
                events += [WatchEvent(event="log", id=format_id(row.job_id), line=line) for line in read]
        return events

    def _state(self, seen: FollowedJob) -> Iterable[WatchEvent]:
        """What is new about a job, if it matches."""
        attributes = None if seen.job is None else json.loads(seen.job)
        if attributes is None or not self._which.matches(attributes):
            return
        job = read_record(JobRecord, attributes)
        status, progress = self._versions.pop(seen.job_id, (0, 0))
        if seen.status_version != status:
            yield WatchEvent(event="status", id=job.id, job=job)
        if seen.progress_version != progress:
            yield _progress(job)
        self._versions[seen.job_id] = (seen.status_version, seen.progress_version)
        if len(self._versions) > REMEMBERED:
            del self._versions[next(iter(self._versions))]


def _changes(before: JobRecord | None, job: JobRecord) -> Iterable[WatchEvent]:
    if before is None or _but_progress(before) != _but_progress(job):
        yield WatchEvent(event="status", id=job.id, job=job)
    if (job.phase, job.progress) != ((None, None) if before is None else (before.phase, before.progress)):
        yield _progress(job)


def _but_progress(job: JobRecord) -> JobRecord:
    return replace(job, phase=None, progress=None)


def _progress(job: JobRecord) -> WatchEvent:
    return WatchEvent(event="progress", id=job.id, attempt=job.attempt, phase=job.phase, progress=job.progress)
