"""`self.request`: what a running task knows about itself."""

import platform
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from fenceline.context.sync_context import SyncContext
from fenceline.errors import Unsupported

#: The label with the `task_id` that a caller chose.
TASK_ID = "task_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`ctx` is Fenceline's context of the job, for what Celery lacks."""

    task: str | None = None
    id: str | None = None
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    retries: int = 0
    group: str | None = None
    delivery_info: Mapping[str, Any] = field(default_factory=dict)
    called_directly: bool = True
    is_eager: bool = False
    hostname: str = field(default_factory=platform.node)
    ctx: SyncContext | None = None

    @property
    def context(self) -> SyncContext:
        """Raises Unsupported if the task was called like a function."""
        if self.ctx is None:
            raise Unsupported("the task was called like a function: there is no job. Use .delay() or .apply_async()")
        return self.ctx


current_request: ContextVar[Request | None] = ContextVar("fenceline_celery_request", default=None)


def make_request(ctx: SyncContext, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Request:
    return Request(
        task=ctx.kind,
        id=ctx.job.labels.get(TASK_ID, ctx.job.id),
        args=args,
        kwargs=kwargs,
        retries=ctx.attempt - 1,
        group=ctx.job.group,
        delivery_info={"routing_key": ctx.job.lane, "priority": ctx.job.priority},
        called_directly=False,
        ctx=ctx,
    )
