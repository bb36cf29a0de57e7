"""All jobs of a queue: enqueue by name, find, list, watch.

The blocking twin, `sync_jobs.py`, is generated from this file by `scripts/generate_sync.py`; a test compares them. So
everything here goes through a `Database` and awaits nothing else.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Unpack

from fenceline.client.arguments import encode_plain
from fenceline.client.enqueue_options import EnqueueOptions, encode_options
from fenceline.client.enqueue_tracing import enqueue_span
from fenceline.client.job import Job
from fenceline.client.job_filters import JobFilters, read_filters
from fenceline.client.watching import watch_jobs
from fenceline.database import calls
from fenceline.model.job import JobPage, JobRecord
from fenceline.model.public_id import parse_id
from fenceline.model.watched import WatchEvent
from fenceline.runtime.database import GetDatabase


class Jobs:
    """All jobs: by id, and by filters."""

    __slots__ = ("_get_database",)

    def __init__(self, get_database: GetDatabase) -> None:
        self._get_database = get_database

    def handle(self, job_id: str) -> Job[Any]:
        """The handle of a job whose public id is known; asks nothing of the database. Raises InvalidId."""
        return Job(self._get_database, parse_id(job_id))

    async def get(self, job_id: str) -> JobRecord:
        """Everything that is known of a job now. Raises InvalidId, NotFound."""
        return await self.handle(job_id).get()

    async def enqueue(self, kind: str, args: Mapping[str, Any] | None, options: EnqueueOptions) -> Job[Any]:
        """Enqueue by the kind's name, without its handler's code."""
        database = self._get_database()
        with enqueue_span(kind, database.tracing) as trace:
            made = await database.call(
                calls.enqueue.enqueue(
                    kind,
                    encode_plain(kind, args),
                    encode_options(options, trace, is_transaction=True),
                    actor=options.get("actor") or database.actor,
                    defaults=None,
                    repeatable="idempotency_key" in options,
                ),
                options.get("connection"),
            )
        return Job(self._get_database, made.job_id, created=made.created)

    async def list(self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[JobFilters]) -> JobPage:
        """One page of jobs, newest first. Raises InvalidId (parent, cursor)."""
        place = None if cursor is None else parse_id(cursor)
        return await self._get_database().call(calls.jobs.page_jobs(read_filters(filters), limit=limit, cursor=place))

    async def each(self, **filters: Unpack[JobFilters]) -> AsyncIterator[JobRecord]:
        """All jobs that match, newest first, page by page."""
        cursor: str | None = None
        while True:
            page = await self.list(limit=500, cursor=cursor, **filters)
            for record in page.items:
                yield record
            cursor = page.next_cursor
            if cursor is None:
                return

    def watch(self, **filters: Unpack[JobFilters]) -> AsyncIterator[WatchEvent]:
        """Every job that matches, first the newest as they are, then whatever happens; without end.

        Log lines are those written from then on. The database asks for the role fenceline_admin.
        """
        return watch_jobs(self._get_database, read_filters(filters))
