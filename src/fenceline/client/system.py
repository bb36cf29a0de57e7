"""The queue as a whole: drain it, measure it, configure it, do its maintenance by hand."""

from collections.abc import Sequence

from fenceline.client.verbs import Verbs
from fenceline.database import calls
from fenceline.model.job import LockRecord, Retention, TenantLimit
from fenceline.model.public_id import format_id
from fenceline.model.records import WorkerRecord


class System(Verbs):
    """The queue as a whole."""

    __slots__ = ()

    async def drain(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Refuse new jobs from outside (`Draining`); existing ones go on."""
        await self._call(calls.system.drain_system(draining=True, actor=self._actor(actor), reason=reason))

    async def resume(self, *, actor: str | None = None) -> None:
        """Accept new jobs again."""
        await self._call(calls.system.drain_system(draining=False, actor=self._actor(actor), reason=None))

    async def depth(self, lane: str | None = None) -> int:
        """How many jobs a worker could start now: the number for autoscalers."""
        return await self._call(calls.lanes.depth(lane))

    async def workers(self, *, stopped: bool = False) -> list[WorkerRecord]:
        """The registered workers; with `stopped` also the last 100 that have stopped."""
        return await self._call(calls.workers.list_workers(stopped=stopped))

    async def lane_rates(self, seconds: float = 10.0) -> dict[str, float]:
        """Jobs that ended per second, by lane, over the last `seconds`."""
        return await self._call(calls.lanes.lane_rates(seconds))

    async def retention(self) -> list[Retention]:
        """How long finished jobs are kept: the default first, then kinds with their own setting."""
        return await self._call(calls.system.retention())

    async def set_retention(
        self, seconds: float | None, *, kind: str | None = None, status: str | None = None, actor: str | None = None
    ) -> None:
        """Set how long finished jobs are kept: those of one kind (and status), or all others.

        None goes back to the decorator's setting or the default. Raises InvalidName, InvalidOption.
        """
        await self._call(
            calls.system.set_retention(seconds, kind=kind, status=status and str(status), actor=self._actor(actor))
        )

    async def tenant_limits(self) -> list[TenantLimit]:
        """How many unfinished jobs tenants may have: the default first, then tenants with their own limit."""
        return await self._call(calls.system.tenant_limits())

    async def set_tenant_limit(
        self, max_jobs: int | None, *, tenant: str | None = None, actor: str | None = None
    ) -> None:
        """Refuse jobs from outside (`Limited`) while a tenant, or any without its own limit, has so many.

        None removes the limit. Jobs are counted about once a second; between two counts a tenant may exceed it.
        Raises InvalidName, InvalidOption.
        """
        await self._call(calls.system.set_tenant_limit(max_jobs, tenant=tenant, actor=self._actor(actor)))

    async def approval_by_other(self) -> bool:
        """Whether a job must be approved by somebody other than its creator."""
        return await self._call(calls.system.approval())

    async def set_approval(self, *, by_other: bool, actor: str | None = None) -> None:
        """Set whether a job must be approved by somebody other than its creator: `by_other`, the default."""
        await self._call(calls.system.set_approval(by_other=by_other, actor=self._actor(actor)))

    async def prune(self, limit: int = 10_000) -> int:
        """Delete some finished jobs whose retention is over; returns how many, 0 if none are left.

        Workers do this once a minute. Dropping the partition of a whole day counts as one step, whatever its size.
        """
        while True:
            done = await self._call(calls.upkeep.prune_some(limit))
            if done.jobs or not done.more:
                return done.jobs or 0

    async def sweep(self) -> int:
        """Take back the jobs of workers that are gone; returns how many. Workers do this twice a second."""
        return await self._call(calls.upkeep.sweep())

    async def rekey(self, *, actor: str | None = None) -> str:
        """Have a worker re-encrypt everything with the newest key; returns the id of the job that does it."""
        return format_id((await self._call(calls.rekey.start_rekey(actor=self._actor(actor)))).job_id)

    async def locks(self, tenant: str | None = None) -> Sequence[LockRecord]:
        """Locks (`ctx.lock`, `app.lock`), resource locks and keys, each followed by those that wait for it."""
        return await self._call(calls.job_records.describe_locks(tenant=tenant))
