"""The blocking twin of jobs.py.

Generated from jobs.py by scripts/generate_sync.py: change that file, not this one.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from fenceline.client.arguments import encode_plain
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.job_filters import JobFilters, read_filters
from fenceline.client.sync_enqueuer import enqueue_one
from fenceline.client.sync_job import SyncJob
from fenceline.client.sync_verbs import Verbs
from fenceline.client.sync_watching import watch_jobs
from fenceline.database import calls
from fenceline.model.job import JobPage, JobRecord
from fenceline.model.public_id import parse_id
from fenceline.model.records import WatchEvent


class SyncJobs(Verbs):
    """All jobs: by id, and by filters."""

    __slots__ = ()

    def handle(self, job_id: str) -> SyncJob[Any]:
        """The handle of a job by its public id; does not ask the database. Raises InvalidId."""
        return SyncJob(self._get_database, parse_id(job_id))

    def get(self, job_id: str) -> JobRecord:
        """Everything known about a job now. Raises InvalidId, NotFound."""
        return self.handle(job_id).get()

    def enqueue(self, kind: str, args: Mapping[str, Any] | None, options: EnqueueOptions) -> SyncJob[Any]:
        """Enqueue by the name of the kind, without its handler."""
        return enqueue_one(self._get_database, kind, encode_plain(kind, args), options)

    def list(self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[JobFilters]) -> JobPage:
        """One page of jobs, newest first. Raises InvalidId (parent, cursor)."""
        place = None if cursor is None else parse_id(cursor)
        return self._call(calls.jobs.page_jobs(read_filters(filters), limit=limit, cursor=place))

    def each(self, **filters: Unpack[JobFilters]) -> Iterator[JobRecord]:
        """All jobs that match, newest first, page by page."""
        cursor: str | None = None
        while True:
            page = self.list(limit=500, cursor=cursor, **filters)
            for record in page.items:
                yield record
            cursor = page.next_cursor
            if cursor is None:
                return

    def watch(self, **filters: Unpack[JobFilters]) -> Iterator[WatchEvent]:
        """Every job that matches: first the newest as they are, then whatever happens, without end.

        Log lines are those written from then on. It needs the database role fenceline_admin.
        """
        return watch_jobs(self._get_database, read_filters(filters))
