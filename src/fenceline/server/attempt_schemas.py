"""What is written for an attempt, and the answers.

Names that `ctx` has for the same thing are taken too: a client made from the Python side guesses right.
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
    """How an attempt ended. `retry` false: failed for good. `delay_seconds`: until a failed or snoozed job is due.
    `waiting`: until the wait that the attempt began is over (`waits`).
    `refused`: the runner's handler does not take the args; somebody whose handler does gets the job.
    """

    result: Any = None
    error: dict[str, Any] | StrictStr | None = None
    errors: list[Any] | None = None
    metadata: dict[str, Any] | None = None
    retry: StrictBool | None = None
    delay_seconds: Seconds | None = None
    ran_seconds: Seconds | None = None


class StatusBody(EndingBody):
    """`running`: the handler has started. `crashed`: the process that it had to itself has died."""

    model_config = examples({"status": "succeeded", "result": {"rows": 3}, "metadata": {"host": "runner-1"}})

    status: EndedStatus | Literal["running", "crashed"]


class FinishItem(EndingBody):
    job: StrictStr
    attempt_id: UUID
    status: EndedStatus


class FinishBody(Body):
    """Many at once. Each is decided by itself."""

    model_config = examples({"attempts": [{"job": ID, "attempt_id": ATTEMPT_ID, "status": "succeeded"}]})

    attempts: Annotated[list[FinishItem], Field(max_length=1000)]


class VerdictView(View):
    """`already`: it has ended like this before, a reply was lost. Whatever is not `accepted` has changed nothing."""

    job: str
    attempt_id: UUID
    verdict: Literal["accepted", "already", "stale", "forbidden", "not_found", "finalizer_missing"]
    final: bool | None = Field(default=None, description="Of a failure: whether the job has ended.")
    asked: str | None = Field(default=None, description="Of a failure: the outcome of the attempt.")
    next_seconds: float | None = Field(default=None, description="Of a failure: seconds until the job runs again.")


class FinishView(View):
    attempts: list[VerdictView]


class LineBody(Body):
    """`at`, or `ago_seconds` where clocks may differ; neither: now."""

    message: StrictStr
    level: Text | None = None
    fields: dict[str, Any] | None = None
    at: AwareDatetime | None = None
    ago_seconds: Seconds | None = None


class StartItem(Body):
    job: StrictStr
    attempt_id: UUID
    ran_seconds: Seconds | None = None


class StartBody(Body):
    """Handlers that have started, `ran_seconds` ago, or are about to. Each is decided by itself."""

    model_config = examples({"attempts": [{"job": ID, "attempt_id": ATTEMPT_ID, "ran_seconds": 0.5}]})

    attempts: Annotated[list[StartItem], Field(max_length=1000)]


class ReportItem(Body):
    """`lines` and `offset` as in a job's `logs`; `progress` is shown as it is."""

    job: StrictStr
    attempt_id: UUID
    lines: Annotated[list[LineBody], Field(max_length=2000)] = Field(default_factory=list)
    offset: Annotated[StrictInt, Field(ge=0, le=2**31 - 1)] | None = None
    progress: dict[str, Any] | None = None


class ReportBody(Body):
    """What many attempts have to tell."""

    model_config = examples(
        {
            "attempts": [
                {"job": ID, "attempt_id": ATTEMPT_ID, "lines": [{"message": "reading"}], "progress": {"done": 3}}
            ]
        }
    )

    attempts: Annotated[list[ReportItem], Field(max_length=1000)]


class LogsBody(Body):
    """`offset`: how many lines of this attempt were sent before; with it, lines that are there are not repeated."""

    model_config = examples({"lines": [{"message": "reading", "fields": {"path": "a"}, "at": AT}], "offset": 0})

    lines: Annotated[list[LineBody], Field(max_length=2000)]
    offset: Annotated[StrictInt, Field(ge=0, le=2**31 - 1)] | None = None


class ProgressBody(Body):
    """`more`: whatever else there is to show."""

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
_ITEM_VERBS: dict[str, ItemSet] = {
    "start": "in_progress",
    "complete": "completed",
    "skip": "skipped",
    "fail": "failed",
}


class ItemsBody(Body):
    """Items, and the set `to` which they go; or one of the verbs `start`, `complete`, `skip`, `fail` with its items.
    `why`: the reason of skipped, the error of failed items.
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
    """With `error` the step has failed, and is run again by the next attempt; else it is done, with `result`."""

    model_config = examples({"result": {"rows": 3}, "ran_seconds": 1.5})

    args_hash: Text | None = None
    result: Any = None
    error: dict[str, Any] | StrictStr | None = None
    ran_seconds: Seconds | None = None


class StepNamesBody(Body):
    model_config = examples({"names": ["load", "publish"]})

    names: Annotated[list[StrictStr], Field(max_length=1000)]


class LockBody(Body):
    """`owner`: one per block that holds a lock, made by the caller; the same again is answered like the first. Left
    out: the attempt has one for each lock. `holding`: owners of the blocks around it, so that waits that can never end
    are refused.
    """

    model_config = examples({"namespace": "edition", "name": "42", "owner": OWNER})

    namespace: StrictStr
    name: Annotated[StrictStr | StrictInt, Field(validation_alias=AliasChoices("name", "id"))]
    owner: UUID | None = None
    holding: list[UUID] = Field(default_factory=list, max_length=100)


class LockView(View):
    """`held` false: it has a place in the line; ask again. `owner`: whom to release."""

    held: bool
    owner: UUID


#: What a handler may say of its children. The rest, as whose retry a job is, is for Fenceline alone to say.
CHILD_OPTIONS = (KNOWN - {"actor", "connection"}) | {"traceparent"}


class ChildrenBody(EnqueueBody):
    """Jobs that come to be when this attempt succeeds: one, as in `POST /v1/jobs`, or `many` args with the same
    options. `request_id`: the same sent again makes no more of them.
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
    """`version`: a number; as text where JSON has none as exact."""

    model_config = examples({"resource": "edition 42", "version": 7})

    resource: StrictStr
    version: StrictInt | float | StrictStr


class GuardView(View):
    """False: a newer version was announced before; do not write."""

    newer: bool


class SnapshotBody(Body):
    model_config = examples({"snapshot": {"size": 3}})

    snapshot: Any


class SnapshotView(View):
    hash: str


class StartView(View):
    """What earlier attempts and other jobs left: the checkpoint, the steps that are done, how parents ended."""

    checkpoint: Any
    steps: dict[str, Any] | None
    parents: list[Any] | None
