"""Bodies and answers of an attempt's writes.

Names that `ctx` uses for the same thing are accepted too, so that a guess based on the Python API is right.
"""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AliasChoices, AwareDatetime, Field, StrictBool, StrictInt, StrictStr, model_validator

from fenceline.client.enqueue_options import KNOWN
from fenceline.server.runner_schemas import ATTEMPT_ID, OWNER, Seconds, Text
from fenceline.server.schemas import AT, ID, Body, EnqueueBody
from fenceline.server.views import View, examples

EndedStatus = Literal[
    "succeeded", "succeeded_with_errors", "failed", "cancelled", "snoozed", "waiting", "released", "refused"
]  # fmt: skip


class EndingBody(Body):
    """How an attempt ended. `retry` false makes a failure final. `delay_seconds`: until a failed or snoozed job is due.
    `waiting`: the job waits until the wait that the attempt began (`waits`) is over.
    `refused`: the runner's handler does not accept the args; the job goes to a runner whose handler does.
    """

    result: Any = None
    error: dict[str, Any] | StrictStr | None = None
    errors: list[Any] | None = None
    metadata: dict[str, Any] | None = None
    retry: StrictBool | None = None
    delay_seconds: Seconds | None = None
    ran_seconds: Seconds | None = None


class StatusBody(EndingBody):
    """`running`: the handler has started. `crashed`: its own process has died."""

    model_config = examples({"status": "succeeded", "result": {"rows": 3}, "metadata": {"host": "runner-1"}})

    status: EndedStatus | Literal["running", "crashed"]


class AttemptItem(Body):
    job: StrictStr
    attempt_id: UUID


class FinishItem(AttemptItem, EndingBody):
    status: EndedStatus


class FinishBody(Body):
    """Ends of many attempts, each decided on its own."""

    model_config = examples({"attempts": [{"job": ID, "attempt_id": ATTEMPT_ID, "status": "succeeded"}]})

    attempts: Annotated[list[FinishItem], Field(max_length=1000)]


class VerdictView(View):
    """`already`: it had ended like this before, and the reply was lost. Only `accepted` has changed anything."""

    job: str
    attempt_id: UUID
    verdict: Literal["accepted", "already", "stale", "forbidden", "not_found", "finalizer_missing"]
    final: bool | None = Field(default=None, description="For a failure: whether the job has ended.")
    asked: str | None = Field(default=None, description="For a failure: the outcome of the attempt.")
    next_seconds: float | None = Field(default=None, description="For a failure: seconds until the job runs again.")


class FinishView(View):
    attempts: list[VerdictView]


class LineBody(Body):
    """`at`, or `ago_seconds` if clocks may differ; the default is now."""

    message: StrictStr
    level: Text | None = None
    fields: dict[str, Any] | None = None
    at: AwareDatetime | None = None
    ago_seconds: Seconds | None = None


class StartItem(AttemptItem):
    ran_seconds: Seconds | None = None


class StartBody(Body):
    """Handlers that started `ran_seconds` ago, or are about to start. Each is decided on its own."""

    model_config = examples({"attempts": [{"job": ID, "attempt_id": ATTEMPT_ID, "ran_seconds": 0.5}]})

    attempts: Annotated[list[StartItem], Field(max_length=1000)]


Lines = Annotated[list[LineBody], Field(max_length=2000)]
Offset = Annotated[StrictInt, Field(ge=0, le=2**31 - 1)]


class ReportItem(AttemptItem):
    """`lines` and `offset` as in a job's `logs`; `progress` is shown as it is."""

    lines: Lines = Field(default_factory=list)
    offset: Offset | None = None
    progress: dict[str, Any] | None = None


class ReportBody(Body):
    """Log lines and progress of many attempts."""

    model_config = examples(
        {
            "attempts": [
                {"job": ID, "attempt_id": ATTEMPT_ID, "lines": [{"message": "reading"}], "progress": {"done": 3}}
            ]
        }
    )

    attempts: Annotated[list[ReportItem], Field(max_length=1000)]


class LogsBody(Body):
    """`offset`: how many lines of this attempt were sent before. With it, a repeated request adds no line twice."""

    model_config = examples({"lines": [{"message": "reading", "fields": {"path": "a"}, "at": AT}], "offset": 0})

    lines: Lines
    offset: Offset | None = None


class ProgressBody(Body):
    """`more`: anything else to show."""

    model_config = examples({"done": 3, "total": 9, "message": "reading"})

    done: StrictInt | float | None = None
    total: StrictInt | float | None = None
    message: StrictStr | None = None
    more: dict[str, Any] = Field(default_factory=dict)


class PhaseBody(Body):
    model_config = examples({"phase": "inventory"})

    phase: Annotated[StrictStr, Field(min_length=1, max_length=200, validation_alias=AliasChoices("phase", "name"))]


ItemNames = Annotated[list[StrictStr], Field(max_length=10_000)]
ItemSet = Literal["in_progress", "completed", "skipped", "failed"]
#: The verbs of `ctx.items`, and where each puts items.
_ITEM_VERBS: dict[str, ItemSet] = {"start": "in_progress", "complete": "completed", "skip": "skipped", "fail": "failed"}


class ItemsBody(Body):
    """`items` and the set `to` which they move; or one of `start`, `complete`, `skip` and `fail` with its items.
    `why`: the reason for skipped items, the error of failed ones.
    """

    model_config = examples({"to": "completed", "items": ["a", "b"]}, {"skip": ["c"], "why": "is empty"})

    to: ItemSet | None = None
    items: ItemNames | None = None
    start: ItemNames | None = None
    complete: ItemNames | None = None
    skip: ItemNames | None = None
    fail: ItemNames | None = None
    why: Annotated[StrictStr | None, Field(validation_alias=AliasChoices("why", "reason", "error"))] = None

    @model_validator(mode="after")
    def _use_verb(self) -> "ItemsBody":
        verbs = [verb for verb in _ITEM_VERBS if getattr(self, verb) is not None]
        if len(verbs) + (self.to is not None) != 1 or (self.to is None) != (self.items is None):
            raise ValueError("give `to` and `items`, or one of start, complete, skip and fail")
        for verb in verbs:
            self.to, self.items = _ITEM_VERBS[verb], getattr(self, verb)
        return self


class ItemsView(View):
    in_progress: int
    completed: int
    skipped: int
    failed: int


class CheckpointBody(Body):
    model_config = examples({"state": {"row": 1000}})

    state: Annotated[Any, Field(validation_alias=AliasChoices("state", "checkpoint"))]


class StepBody(Body):
    """With `error` the step has failed, and the next attempt runs it again; otherwise it is done, with `result`."""

    model_config = examples({"result": {"rows": 3}, "ran_seconds": 1.5})

    args_hash: Text | None = None
    result: Any = None
    error: dict[str, Any] | StrictStr | None = None
    ran_seconds: Seconds | None = None


class StepNamesBody(Body):
    model_config = examples({"names": ["load", "publish"]})

    names: Annotated[list[StrictStr], Field(max_length=1000)]


class LockBody(Body):
    """`owner`: made by the caller for each block that holds a lock; a repeat is answered like the first. By default the
    attempt has one owner for each lock. `holding`: the owners of enclosing blocks, so that deadlocks are refused.
    """

    model_config = examples({"namespace": "edition", "name": "42", "owner": OWNER})

    namespace: StrictStr
    name: Annotated[StrictStr | StrictInt, Field(validation_alias=AliasChoices("name", "id"))]
    owner: UUID | None = None
    holding: list[UUID] = Field(default_factory=list, max_length=100)


class LockView(View):
    """`held` false: it has a place in the queue; ask again. `owner`: what to release."""

    held: bool
    owner: UUID


#: Options that a handler may set for its children. Others, such as `retry_of`, are set by Fenceline alone.
CHILD_OPTIONS = (KNOWN - {"actor", "connection"}) | {"traceparent"}


class ChildrenBody(EnqueueBody):
    """Jobs that are enqueued when this attempt succeeds: one, as in `POST /v1/jobs`, or `many` args with the same
    options. A repeat with the same `request_id` adds no more of them.
    """

    model_config = examples(
        {"kind": "thumbnail", "args": {"page": 1}, "priority": 3},
        {"kind": "thumbnail", "many": [{"page": 1}, {"page": 2}], "options": {"priority": 3}},
    )

    many: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=10_000)] | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    defaults: dict[str, Any] | None = None
    request_id: UUID | None = None

    @model_validator(mode="after")
    def _check(self) -> "ChildrenBody":
        if self.args is not None and self.many is not None:
            raise ValueError("give either args or many")
        unknown = sorted(self.options.keys() - CHILD_OPTIONS)
        if unknown:
            raise ValueError(f"options: {', '.join(unknown)} cannot be given: use {', '.join(sorted(CHILD_OPTIONS))}")
        return self


class ChildrenView(View):
    ids: list[str]


class GuardBody(Body):
    """`version`: a number, or its text where a JSON number is not exact enough."""

    model_config = examples({"resource": "edition 42", "version": 7})

    resource: StrictStr
    version: StrictInt | float | StrictStr


class GuardView(View):
    """False: a newer version was already announced; do not write."""

    newer: bool


class SnapshotBody(Body):
    model_config = examples({"snapshot": {"size": 3}})

    snapshot: Any


class SnapshotView(View):
    hash: str


class StartView(View):
    """What earlier attempts and other jobs left: the checkpoint, finished steps, how parents ended."""

    checkpoint: Any
    steps: dict[str, Any] | None
    parents: list[Any] | None
