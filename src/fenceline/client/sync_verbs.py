"""The blocking twin of verbs.py.

Generated from verbs.py by scripts/generate_sync.py: change that file, not this one.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from fenceline.client.arguments import encode_plain
from fenceline.client.options import EnqueueOptions, encode_options
from fenceline.client.sync_caller import SyncCallerOf
from fenceline.client.sync_job_verbs import SyncJob
from fenceline.client.tracing import enqueue_span
from fenceline.database import calls, observe_calls, upkeep_calls
from fenceline.errors import NotFound
from fenceline.model.job import JobPage, JobRecord, Lane, LockRecord, Retention, TenantLimit
from fenceline.model.observed import WorkerRecord
from fenceline.model.public_id import parse_id


class SyncJobs:
    """All jobs: by id, and by filters."""

    __slots__ = ("_caller_of",)

    def __init__(self, caller_of: SyncCallerOf) -> None:
        self._caller_of = caller_of

    def handle(self, job_id: str) -> SyncJob[Any]:
        """The handle of a job whose public id is known; asks nothing of the database. Raises InvalidId."""
        return SyncJob(self._caller_of, parse_id(job_id))

    def get(self, job_id: str) -> JobRecord:
        """Everything that is known of a job now. Raises InvalidId, NotFound."""
        return self.handle(job_id).get()

    def enqueue(self, kind: str, args: Mapping[str, Any] | None, options: EnqueueOptions) -> SyncJob[Any]:
        """Enqueue by the kind's name, without its handler's code."""
        caller = self._caller_of()
        with enqueue_span(kind, caller.tracing) as trace:
            made = caller.call(
                calls.enqueue(
                    kind,
                    encode_plain(kind, args),
                    encode_options(options, trace),
                    actor=None,
                    defaults=None,
                    repeatable="idempotency_key" in options,
                ),
                options.get("connection"),
            )
        return SyncJob(self._caller_of, made.job_id, created=made.created)

    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        kind: str | Sequence[str] | None = None,
        lane: str | Sequence[str] | None = None,
        tenant: str | Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> JobPage:
        """One page of jobs, newest first. Several values of one filter mean any of them; labels must all match."""
        return self._caller_of().call(
            calls.list_jobs(
                statuses=_several(status),
                kinds=_several(kind),
                lanes=_several(lane),
                tenants=_several(tenant),
                labels=labels,
                created_after=created_after,
                created_before=created_before,
                limit=limit,
                cursor=cursor,
            )
        )

    def each(
        self,
        *,
        status: str | Sequence[str] | None = None,
        kind: str | Sequence[str] | None = None,
        lane: str | Sequence[str] | None = None,
        tenant: str | Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
    ) -> Iterator[JobRecord]:
        """All jobs that match, newest first, page by page."""
        cursor: str | None = None
        while True:
            page = self.list(
                status=status,
                kind=kind,
                lane=lane,
                tenant=tenant,
                labels=labels,
                created_after=created_after,
                created_before=created_before,
                limit=500,
                cursor=cursor,
            )
            for record in page.items:
                yield record
            cursor = page.next_cursor
            if cursor is None:
                return


class SyncLanes:
    """The lanes and their settings; a change takes effect with the next claim."""

    __slots__ = ("_caller_of",)

    def __init__(self, caller_of: SyncCallerOf) -> None:
        self._caller_of = caller_of

    def list(self) -> list[Lane]:
        return self._caller_of().call(calls.lanes())

    def get(self, name: str) -> Lane:
        """One lane. Raises NotFound."""
        found = self._caller_of().call(calls.lanes(name))
        if not found:
            raise NotFound(f"lane {name!r} does not exist")
        return found[0]

    def create(self, name: str, *, actor: str | None = None, **settings: Any) -> Lane:
        """Create a lane. Raises InvalidLane when it exists or a setting breaks a rule."""
        self._caller_of().call(calls.set_lane(name, settings, actor=actor, create=True))
        return self.get(name)

    def set(self, name: str, *, actor: str | None = None, **settings: Any) -> Lane:
        """Change settings of a lane; None clears one. Raises UnknownLane, InvalidLane."""
        self._caller_of().call(calls.set_lane(name, settings, actor=actor, create=False))
        return self.get(name)

    def drain(self, name: str, *, actor: str | None = None) -> Lane:
        """Stop claims of a lane; enqueues are still accepted."""
        return self.set(name, actor=actor, enabled=False)

    def resume(self, name: str, *, actor: str | None = None) -> Lane:
        return self.set(name, actor=actor, enabled=True)

    def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a lane without unfinished jobs. Raises UnknownLane, LaneInUse."""
        self._caller_of().call(calls.delete_lane(name, actor=actor))


class SyncSystem:
    """The queue as a whole."""

    __slots__ = ("_caller_of",)

    def __init__(self, caller_of: SyncCallerOf) -> None:
        self._caller_of = caller_of

    def drain(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Refuse new jobs from outside (`Draining`); what is there goes on."""
        self._caller_of().call(calls.drain_system(draining=True, actor=actor, reason=reason))

    def resume(self, *, actor: str | None = None) -> None:
        self._caller_of().call(calls.drain_system(draining=False, actor=actor, reason=None))

    def depth(self, lane: str | None = None) -> int:
        """How many jobs a worker could start now: the number for autoscalers."""
        return self._caller_of().call(calls.depth(lane))

    def workers(self, *, stopped: bool = False) -> list[WorkerRecord]:
        """The workers that are signed on; with `stopped` also those that were, the last 100."""
        return self._caller_of().call(observe_calls.list_workers(stopped=stopped))

    def lane_rates(self, seconds: float = 10.0) -> dict[str, float]:
        """Jobs that ended per second by lane, over the last so many seconds."""
        return self._caller_of().call(observe_calls.lane_rates(seconds))

    def retention(self) -> list[Retention]:
        """How long finished jobs are kept: the default first, then kinds that have a word of their own."""
        return self._caller_of().call(upkeep_calls.retention())

    def set_retention(
        self, seconds: float | None, *, kind: str | None = None, status: str | None = None, actor: str | None = None
    ) -> None:
        """Keep finished jobs so long: of one kind (and status), or all that nothing else is said about.

        None goes back to what the decorator or the default says. Raises InvalidName, InvalidOption.
        """
        self._caller_of().call(
            upkeep_calls.set_retention(seconds, kind=kind, status=status and str(status), actor=actor)
        )

    def tenant_limits(self) -> list[TenantLimit]:
        """How many unfinished jobs tenants may have: the default first, then tenants that have a limit of their own."""
        return self._caller_of().call(upkeep_calls.tenant_limits())

    def set_tenant_limit(self, max_jobs: int | None, *, tenant: str | None = None, actor: str | None = None) -> None:
        """Refuse jobs from outside (`Limited`) while a tenant, or every one without a limit of its own, has so many.

        None takes the limit away. Jobs are counted about once a second: what comes between two counts may exceed it.
        Raises InvalidName, InvalidOption.
        """
        self._caller_of().call(upkeep_calls.set_tenant_limit(max_jobs, tenant=tenant, actor=actor))

    def prune(self, limit: int = 10_000) -> int:
        """Forget some finished jobs whose retention is over, and say how many; 0: there are no more.

        Workers do this once a minute. A whole day's partition that is over counts as one step, whatever its size.
        """
        return self._caller_of().call(upkeep_calls.prune(limit))

    def sweep(self) -> int:
        """Take back the jobs of workers that are gone, and say how many. Workers do this twice a second."""
        return self._caller_of().call(upkeep_calls.sweep())

    def locks(self, tenant: str | None = None) -> Sequence[LockRecord]:
        """The locks that running jobs hold (`ctx.lock`), each followed by those who wait for it, in their order."""
        return self._caller_of().call(calls.list_locks(tenant))


def _several(value: str | Sequence[str] | None) -> list[str] | None:
    if value is None:
        return None
    return [value] if isinstance(value, str) else list(value)
