"""What runners send and get."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from fenceline.server.schemas import AT, ID, Body, JobView, Name, View

ATTEMPT_ID = "6f1c1b0e-6f0a-4a53-9d3b-0c8f0a3f3f10"
OWNER = "0b8e4a36-9a8f-4d5e-8f0e-52b8a7a2f6a1"

Seconds = Annotated[float, Field(ge=0, le=1e9, strict=False)]
Text = Annotated[StrictStr, Field(max_length=200)]


def _examples(*examples: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


class RunnerBody(Body):
    """`lanes` and `kinds`: what it serves; null: all. `lease_seconds`: after such a silence its jobs go to others."""

    model_config = _examples({"name": "runner-1", "lanes": ["default"], "labels": {"zone": "a"}})

    name: Text | None = None
    lanes: list[Name] | None = None
    labels: dict[str, StrictStr] | None = None
    kinds: list[Name] | None = None
    host: Text | None = None
    version: Text | None = None
    lease_seconds: Annotated[float, Field(ge=0.5, le=3600)] | None = None


class RunnerView(View):
    """`tenant`: whose jobs it gets; null: everybody's."""

    id: int
    name: str
    lanes: list[str] | None
    labels: dict[str, str] | None
    kinds: list[str] | None
    tenant: str | None
    lease_seconds: float


class HeartbeatBody(Body):
    """`attempts`: all that the runner holds. Attempts of its that are not named, and were claimed before its heartbeat
    before this one, are given back: the reply of their claim was lost. Left out: only the lease is renewed.
    """

    model_config = _examples({"attempts": [ATTEMPT_ID]})

    attempts: Annotated[list[UUID], Field(max_length=10_000)] | None = None


class HeartbeatView(View):
    """`cancel`: handlers that are asked to stop, `grace` how many seconds each has. `stale`: attempts that are gone."""

    cancel: list[UUID]
    grace: dict[str, float]
    stale: list[UUID]
    lease_seconds: float


class StopBody(Body):
    """`fail_kinds`: what is still held of these fails; the rest is given back."""

    model_config = _examples({"fail_kinds": []})

    fail_kinds: list[Name] = Field(default_factory=list)


class CrashBody(Body):
    """`suspects`: attempts whose handlers were running when the process died; null: all."""

    model_config = _examples({"suspects": [ATTEMPT_ID], "error": {"exit_code": -9}})

    suspects: Annotated[list[UUID], Field(max_length=10_000)] | None = None
    error: dict[str, Any] = Field(default_factory=dict)


class EndedView(View):
    ended: int


class ClaimBody(Body):
    """Up to `count` jobs of one of the lanes. `wait`: seconds to wait when there are none. `request_id`: the same claim
    sent again, because the reply was lost, gets the same attempts.
    """

    model_config = _examples({"runner_id": 1, "lanes": ["default"], "count": 10, "wait": 0, "request_id": OWNER})

    runner_id: StrictInt | StrictStr
    lanes: list[Name] | None = None
    count: Annotated[StrictInt, Field(ge=1, le=1000)] = 1
    wait: Annotated[float, Field(ge=0, le=60)] = 0.0
    request_id: Text | None = None
    kinds: list[Name] | None = None


class ClaimedView(View):
    """`timeout_seconds` of the handler; `alone`: run nothing beside it; `details`: what a plain job does not have."""

    job: JobView
    attempt_id: UUID
    token: int
    number: int
    lease_seconds: float
    timeout_seconds: float | None
    alone: bool
    details: dict[str, Any] | None


class ClaimView(View):
    """`suspects`: jobs wait to be run alone. A runner that holds nothing gets one by asking for a count of 1."""

    attempts: list[ClaimedView]
    suspects: bool


Status = Literal["succeeded", "succeeded_with_errors", "failed", "cancelled", "snoozed", "released"]


class EndBody(Body):
    """How an attempt ended. `retry` false: failed for good. `delay_seconds`: until a failed or snoozed job is due."""

    result: Any = None
    error: dict[str, Any] | StrictStr | None = None
    errors: list[Any] | None = None
    metadata: dict[str, Any] | None = None
    retry: StrictBool = True
    delay_seconds: Seconds | None = None
    ran_seconds: Seconds | None = None


class StatusBody(EndBody):
    """`running`: the handler has started. `crashed`: the process that it had to itself has died."""

    model_config = _examples({"status": "succeeded", "result": {"rows": 3}, "metadata": {"host": "runner-1"}})

    status: Status | Literal["running", "crashed"]


class FinishItem(EndBody):
    job: StrictStr
    attempt_id: UUID
    status: Status


class FinishBody(Body):
    """Many at once. Each is decided by itself."""

    model_config = _examples({"attempts": [{"job": ID, "attempt_id": ATTEMPT_ID, "status": "succeeded"}]})

    attempts: Annotated[list[FinishItem], Field(max_length=1000)]


class VerdictView(View):
    """`already`: it has ended like this before, a reply was lost. Whatever is not `accepted` has changed nothing."""

    job: str
    attempt_id: UUID
    verdict: Literal["accepted", "already", "stale", "forbidden", "not_found", "finalizer_missing"]


class FinishView(View):
    attempts: list[VerdictView]


class LineBody(Body):
    """`at`, or `ago_seconds` where clocks may differ; neither: now."""

    message: StrictStr
    level: Text = "info"
    fields: dict[str, Any] | None = None
    at: AwareDatetime | None = None
    ago_seconds: Seconds | None = None


class LogsBody(Body):
    """`offset`: how many lines of this attempt were sent before; with it, lines that are there are not repeated."""

    model_config = _examples({"lines": [{"message": "reading", "fields": {"path": "a"}, "at": AT}], "offset": 0})

    lines: Annotated[list[LineBody], Field(max_length=2000)]
    offset: Annotated[StrictInt, Field(ge=0, le=2**31 - 1)] | None = None


class ProgressBody(Body):
    """`more`: whatever else there is to show."""

    model_config = _examples({"done": 3, "total": 9, "message": "reading"})

    done: StrictInt | float | None = None
    total: StrictInt | float | None = None
    message: StrictStr | None = None
    more: dict[str, Any] = Field(default_factory=dict)


class PhaseBody(Body):
    model_config = _examples({"phase": "inventory"})

    phase: Annotated[StrictStr, Field(min_length=1, max_length=200)]


class ItemsBody(Body):
    """`why`: the reason of skipped, the error of failed items."""

    model_config = _examples({"to": "completed", "items": ["a", "b"]})

    to: Literal["in_progress", "completed", "skipped", "failed"]
    items: Annotated[list[StrictStr], Field(max_length=10_000)]
    why: StrictStr | None = None


class ItemsView(View):
    in_progress: int
    completed: int
    skipped: int
    failed: int


class CheckpointBody(Body):
    model_config = _examples({"state": {"row": 1000}})

    state: Any


class StepBody(Body):
    """With `error` the step has failed, and is run again by the next attempt; else it is done, with `result`."""

    model_config = _examples({"result": {"rows": 3}, "ran_seconds": 1.5})

    args_hash: Text | None = None
    result: Any = None
    error: dict[str, Any] | None = None
    ran_seconds: Seconds | None = None


class StepNamesBody(Body):
    model_config = _examples({"names": ["load", "publish"]})

    names: Annotated[list[StrictStr], Field(max_length=1000)]


class LockBody(Body):
    """`owner`: one per block that holds a lock, made by the caller; the same again is answered like the first.
    `holding`: owners of the blocks around it, so that waits that can never end are refused.
    """

    model_config = _examples({"namespace": "edition", "name": "42", "owner": OWNER})

    namespace: StrictStr
    name: StrictStr
    owner: UUID
    holding: list[UUID] = Field(default_factory=list, max_length=100)


class LockView(View):
    """False: it has a place in the line; ask again."""

    held: bool


class ChildrenBody(Body):
    """Jobs that come to be when this attempt succeeds. `request_id`: the same sent again makes no more of them."""

    model_config = _examples({"kind": "thumbnail", "many": [{"page": 1}, {"page": 2}], "options": {"priority": 3}})

    kind: StrictStr
    many: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=10_000)]
    options: dict[str, Any] = Field(default_factory=dict)
    defaults: dict[str, Any] | None = None
    request_id: UUID | None = None


class ChildrenView(View):
    ids: list[str]


class GuardBody(Body):
    """`version`: a number; as text where JSON has none as exact."""

    model_config = _examples({"resource": "edition 42", "version": 7})

    resource: StrictStr
    version: StrictInt | float | StrictStr


class GuardView(View):
    """False: a newer version was announced before; do not write."""

    newer: bool


class SnapshotBody(Body):
    model_config = _examples({"snapshot": {"size": 3}})

    snapshot: Any


class SnapshotView(View):
    hash: str


class StartView(View):
    """What earlier attempts and other jobs left: the checkpoint, the steps that are done, how parents ended."""

    checkpoint: Any
    steps: dict[str, Any] | None
    parents: list[Any] | None
