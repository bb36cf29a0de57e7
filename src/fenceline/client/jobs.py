"""All jobs of a queue: enqueue by name, find, list, watch."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Unpack

from fenceline.client.arguments import encode_plain
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.enqueuer import enqueue_one
from fenceline.client.job import Job
from fenceline.client.job_filters import JobFilters, read_filters
from fenceline.client.verbs import Verbs
from fenceline.client.watching import watch_jobs
from fenceline.database import calls
from fenceline.model.job import JobPage, JobRecord
from fenceline.model.public_id import parse_id
from fenceline.model.records import WatchEvent


class Jobs(Verbs):
    """All jobs: by id, and by filters."""

    __slots__ = ()

    def handle(self, job_id: str) -> Job[Any]:
        """The handle of a job by its public id; does not ask the database. Raises InvalidId."""
        return Job(self._get_database, parse_id(job_id))

    async def get(self, job_id: str) -> JobRecord:
        """Everything known about a job now. Raises InvalidId, NotFound."""
        return await self.handle(job_id).get()

    async def enqueue(self, kind: str, args: Mapping[str, Any] | None, options: EnqueueOptions) -> Job[Any]:
        """Enqueue by the name of the kind, without its handler."""
        return await enqueue_one(self._get_database, kind, encode_plain(kind, args), options)

    async def list(self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[JobFilters]) -> JobPage:
        """One page of jobs, newest first. Raises InvalidId (parent, cursor)."""
        place = None if cursor is None else parse_id(cursor)
        return await self._call(calls.jobs.page_jobs(read_filters(filters), limit=limit, cursor=place))

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
        """Every job that matches: first the newest as they are, then whatever happens, without end.

        Log lines are those written from then on. It needs the database role fenceline_admin.
        """
        return watch_jobs(self._get_database, read_filters(filters))
