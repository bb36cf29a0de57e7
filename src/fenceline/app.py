"""The app as users see it: what producers use, from `client.app.App`, and what runs jobs."""

from collections.abc import Mapping, Sequence

from fenceline.client.app import App
from fenceline.model.worker_settings import WorkerSettings


class Fenceline(App):
    __doc__ = App.__doc__

    async def run_worker(
        self,
        lanes: Sequence[str] | None = None,
        *,
        concurrency: int = 100,
        threads: int = 10,
        isolated: int = 2,
        transactions: int = 1,
        batch: int = 500,
        grace_seconds: float = 30.0,
        lease_seconds: float = 30.0,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        import_name: str | None = None,
    ) -> None:
        """Run jobs of the given lanes (default: all) in this process until cancelled.

        It runs up to `concurrency` async handlers, `threads` blocking ones, `isolated` ones in separate processes and
        `transactions` blocks of `ctx.transaction()` at a time. It claims and finishes up to `batch` jobs per statement.

        When it is cancelled, handlers have `grace_seconds` to finish. If it cannot renew its lease for `lease_seconds`,
        its jobs go to others. Jobs can be addressed to a worker by its `name` or `labels`.

        `import_name`, such as "module:attribute", tells other processes where to import the app. Isolated handlers need
        it, and so does rerunning suspects of a crash alone.

        For a separate program with a supervisor and several processes, use `fenceline worker`.
        """
        from fenceline.worker.in_process import run_worker  # noqa: PLC0415 - not for programs that only enqueue

        settings = WorkerSettings(
            lanes=None if lanes is None else tuple(lanes),
            concurrency=concurrency,
            threads=threads,
            isolated=isolated,
            transactions=transactions,
            batch=batch,
            grace_seconds=grace_seconds,
            lease_seconds=lease_seconds,
            name=name,
            labels=None if labels is None else dict(labels),
        )
        await run_worker(self, settings, import_name)

    async def drain(self) -> int:
        """Run jobs in this process until none is claimable; returns how many it ran.

        For tests, and for an app with `delivery="inline"`, which does so after every enqueue that it commits itself.
        """
        from fenceline.worker.inline import drain  # noqa: PLC0415 - as above

        return await drain(self)
