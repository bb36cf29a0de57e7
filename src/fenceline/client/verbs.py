"""What can be done with all jobs, with lanes and with the queue as a whole, asynchronously.

The blocking twin, `sync_verbs.py`, is generated from this file by `scripts/generate_sync.py`; a test compares them. So
everything here goes through a caller and awaits nothing else.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from fenceline.client.arguments import encode_plain
from fenceline.client.caller import CallerOf
from fenceline.client.job_verbs import Job
from fenceline.client.options import EnqueueOptions, encode_options
from fenceline.client.tracing import enqueue_span
from fenceline.database import calls, observe_calls, upkeep_calls
from fenceline.errors import NotFound
from fenceline.model.job import JobPage, JobRecord, Lane, LockRecord, Retention, TenantLimit
from fenceline.model.observed import WorkerRecord
from fenceline.model.public_id import parse_id


class Jobs:
    """All jobs: by id, and by filters."""

    __slots__ = ("_caller_of",)

    def __init__(self, caller_of: CallerOf) -> None:
        self._caller_of = caller_of

    def handle(self, job_id: str) -> Job[Any]:
        """The handle of a job whose public id is known; asks nothing of the database. Raises InvalidId."""
        return Job(self._caller_of, parse_id(job_id))

    async def get(self, job_id: str) -> JobRecord:
        """Everything that is known of a job now. Raises InvalidId, NotFound."""
        return await self.handle(job_id).get()

    async def enqueue(self, kind: str, args: Mapping[str, Any] | None, options: EnqueueOptions) -> Job[Any]:
        """Enqueue by the kind's name, without its handler's code."""
        caller = self._caller_of()
        with enqueue_span(kind, caller.tracing) as trace:
            made = await caller.call(
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
        return Job(self._caller_of, made.job_id, created=made.created)

    async def list(
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
        return await self._caller_of().call(
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

    async def each(
        self,
        *,
        status: str | Sequence[str] | None = None,
        kind: str | Sequence[str] | None = None,
        lane: str | Sequence[str] | None = None,
        tenant: str | Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
    ) -> AsyncIterator[JobRecord]:
        """All jobs that match, newest first, page by page."""
        cursor: str | None = None
        while True:
            page = await self.list(
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


class Lanes:
    """The lanes and their settings; a change takes effect with the next claim."""

    __slots__ = ("_caller_of",)

    def __init__(self, caller_of: CallerOf) -> None:
        self._caller_of = caller_of

    async def list(self) -> list[Lane]:
        return await self._caller_of().call(calls.lanes())

    async def get(self, name: str) -> Lane:
        """One lane. Raises NotFound."""
        found = await self._caller_of().call(calls.lanes(name))
        if not found:
            raise NotFound(f"lane {name!r} does not exist")
        return found[0]

    async def create(self, name: str, *, actor: str | None = None, **settings: Any) -> Lane:
        """Create a lane. Raises InvalidLane when it exists or a setting breaks a rule."""
        await self._caller_of().call(calls.set_lane(name, settings, actor=actor, create=True))
        return await self.get(name)

    async def set(self, name: str, *, actor: str | None = None, **settings: Any) -> Lane:
        """Change settings of a lane; None clears one. Raises UnknownLane, InvalidLane."""
        await self._caller_of().call(calls.set_lane(name, settings, actor=actor, create=False))
        return await self.get(name)

    async def drain(self, name: str, *, actor: str | None = None) -> Lane:
        """Stop claims of a lane; enqueues are still accepted."""
        return await self.set(name, actor=actor, enabled=False)

    async def resume(self, name: str, *, actor: str | None = None) -> Lane:
        return await self.set(name, actor=actor, enabled=True)

    async def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a lane without unfinished jobs. Raises UnknownLane, LaneInUse."""
        await self._caller_of().call(calls.delete_lane(name, actor=actor))


class System:
    """The queue as a whole."""

    __slots__ = ("_caller_of",)

    def __init__(self, caller_of: CallerOf) -> None:
        self._caller_of = caller_of

    async def drain(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Refuse new jobs from outside (`Draining`); what is there goes on."""
        await self._caller_of().call(calls.drain_system(draining=True, actor=actor, reason=reason))

    async def resume(self, *, actor: str | None = None) -> None:
        await self._caller_of().call(calls.drain_system(draining=False, actor=actor, reason=None))

    async def depth(self, lane: str | None = None) -> int:
        """How many jobs a worker could start now: the number for autoscalers."""
        return await self._caller_of().call(calls.depth(lane))

    async def workers(self, *, stopped: bool = False) -> list[WorkerRecord]:
        """The workers that are signed on; with `stopped` also those that were, the last 100."""
        return await self._caller_of().call(observe_calls.list_workers(stopped=stopped))

    async def lane_rates(self, seconds: float = 10.0) -> dict[str, float]:
        """Jobs that ended per second by lane, over the last so many seconds."""
        return await self._caller_of().call(observe_calls.lane_rates(seconds))

    async def retention(self) -> list[Retention]:
        """How long finished jobs are kept: the default first, then kinds that have a word of their own."""
        return await self._caller_of().call(upkeep_calls.retention())

    async def set_retention(
        self, seconds: float | None, *, kind: str | None = None, status: str | None = None, actor: str | None = None
    ) -> None:
        """Keep finished jobs so long: of one kind (and status), or all that nothing else is said about.

        None goes back to what the decorator or the default says. Raises InvalidName, InvalidOption.
        """
        await self._caller_of().call(
            upkeep_calls.set_retention(seconds, kind=kind, status=status and str(status), actor=actor)
        )

    async def tenant_limits(self) -> list[TenantLimit]:
        """How many unfinished jobs tenants may have: the default first, then tenants that have a limit of their own."""
        return await self._caller_of().call(upkeep_calls.tenant_limits())

    async def set_tenant_limit(
        self, max_jobs: int | None, *, tenant: str | None = None, actor: str | None = None
    ) -> None:
        """Refuse jobs from outside (`Limited`) while a tenant, or every one without a limit of its own, has so many.

        None takes the limit away. Jobs are counted about once a second: what comes between two counts may exceed it.
        Raises InvalidName, InvalidOption.
        """
        await self._caller_of().call(upkeep_calls.set_tenant_limit(max_jobs, tenant=tenant, actor=actor))

    async def prune(self, limit: int = 10_000) -> int:
        """Forget some finished jobs whose retention is over, and say how many; 0: there are no more.

        Workers do this once a minute. A whole day's partition that is over counts as one step, whatever its size.
        """
        return await self._caller_of().call(upkeep_calls.prune(limit))

    async def sweep(self) -> int:
        """Take back the jobs of workers that are gone, and say how many. Workers do this twice a second."""
        return await self._caller_of().call(upkeep_calls.sweep())

    async def locks(self, tenant: str | None = None) -> Sequence[LockRecord]:
        """The locks that running jobs hold (`ctx.lock`), each followed by those who wait for it, in their order."""
        return await self._caller_of().call(calls.list_locks(tenant))


def _several(value: str | Sequence[str] | None) -> list[str] | None:
    if value is None:
        return None
    return [value] if isinstance(value, str) else list(value)
