"""The queue as a whole: drain it, measure it, set what it goes by, keep the house by hand.

The blocking twin, `sync_system.py`, is generated from this file by `scripts/generate_sync.py`; a test compares them. So
everything here goes through a `Database` and awaits nothing else.
"""

from collections.abc import Sequence

from fenceline.database import calls
from fenceline.model.job import LockRecord, Retention, TenantLimit
from fenceline.model.public_id import format_id
from fenceline.model.records import WorkerRecord
from fenceline.runtime.database import GetDatabase


class System:
    """The queue as a whole."""

    __slots__ = ("_get_database",)

    def __init__(self, get_database: GetDatabase) -> None:
        self._get_database = get_database

    async def drain(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Refuse new jobs from outside (`Draining`); what is there goes on."""
        await self._get_database().call(
            calls.system.drain_system(draining=True, actor=actor or self._get_database().actor, reason=reason)
        )

    async def resume(self, *, actor: str | None = None) -> None:
        """Accept new jobs again."""
        await self._get_database().call(
            calls.system.drain_system(draining=False, actor=actor or self._get_database().actor, reason=None)
        )

    async def depth(self, lane: str | None = None) -> int:
        """How many jobs a worker could start now: the number for autoscalers."""
        return await self._get_database().call(calls.lanes.depth(lane))

    async def workers(self, *, stopped: bool = False) -> list[WorkerRecord]:
        """The workers that are signed on; with `stopped` also those that were, the last 100."""
        return await self._get_database().call(calls.workers.list_workers(stopped=stopped))

    async def lane_rates(self, seconds: float = 10.0) -> dict[str, float]:
        """Jobs that ended per second by lane, over the last so many seconds."""
        return await self._get_database().call(calls.lanes.lane_rates(seconds))

    async def retention(self) -> list[Retention]:
        """How long finished jobs are kept: the default first, then kinds that have a word of their own."""
        return await self._get_database().call(calls.system.retention())

    async def set_retention(
        self, seconds: float | None, *, kind: str | None = None, status: str | None = None, actor: str | None = None
    ) -> None:
        """Say how long finished jobs are kept: of one kind (and status), or of all others.

        None goes back to what the decorator or the default says. Raises InvalidName, InvalidOption.
        """
        await self._get_database().call(
            calls.system.set_retention(
                seconds, kind=kind, status=status and str(status), actor=actor or self._get_database().actor
            )
        )

    async def tenant_limits(self) -> list[TenantLimit]:
        """How many unfinished jobs tenants may have: the default first, then tenants that have a limit of their own."""
        return await self._get_database().call(calls.system.tenant_limits())

    async def set_tenant_limit(
        self, max_jobs: int | None, *, tenant: str | None = None, actor: str | None = None
    ) -> None:
        """Refuse jobs from outside (`Limited`) while a tenant, or every one without a limit of its own, has so many.

        None takes the limit away. Jobs are counted about once a second: what comes between two counts may exceed it.
        Raises InvalidName, InvalidOption.
        """
        await self._get_database().call(
            calls.system.set_tenant_limit(max_jobs, tenant=tenant, actor=actor or self._get_database().actor)
        )

    async def approval_by_other(self) -> bool:
        """Whether a job must be approved by somebody else than the one who enqueued it."""
        return await self._get_database().call(calls.system.approval())

    async def set_approval(self, *, by_other: bool, actor: str | None = None) -> None:
        """Say whether whoever enqueued a job may approve it: not with `by_other`, which is the default."""
        await self._get_database().call(
            calls.system.set_approval(by_other=by_other, actor=actor or self._get_database().actor)
        )

    async def prune(self, limit: int = 10_000) -> int:
        """Forget some finished jobs whose retention is over, and say how many; 0: there are no more.

        Workers do this once a minute. A whole day's partition that is over counts as one step, whatever its size.
        """
        while True:
            done = await self._get_database().call(calls.upkeep.prune_some(limit))
            if done.jobs or not done.more:
                return done.jobs or 0

    async def sweep(self) -> int:
        """Take back the jobs of workers that are gone, and say how many. Workers do this twice a second."""
        return await self._get_database().call(calls.upkeep.sweep())

    async def rekey(self, *, actor: str | None = None) -> str:
        """Have a worker encrypt anew, with the newest key, whatever is encrypted; the id of the job that does it."""
        return format_id(
            (await self._get_database().call(calls.rekey.start_rekey(actor=actor or self._get_database().actor))).job_id
        )

    async def locks(self, tenant: str | None = None) -> Sequence[LockRecord]:
        """Locks (`ctx.lock`, `app.lock`), resource locks and keys, each followed by those who wait for it."""
        return await self._get_database().call(calls.job_records.describe_locks(tenant=tenant))
