"""What runners send and get when they register, live and claim; what they write for attempts: `attempt_schemas`."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field, StrictInt, StrictStr

from fenceline.server.schemas import Body, JobView, Name, View

ATTEMPT_ID = "6f1c1b0e-6f0a-4a53-9d3b-0c8f0a3f3f10"
OWNER = "0b8e4a36-9a8f-4d5e-8f0e-52b8a7a2f6a1"

Seconds = Annotated[float, Field(ge=0, le=1e9, strict=False)]
Text = Annotated[StrictStr, Field(max_length=200)]


def examples(*examples: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


class RunnerBody(Body):
    """`lanes` and `kinds`: what it serves; null: all. `lease_seconds`: after such a silence its jobs go to others."""

    model_config = examples({"name": "runner-1", "lanes": ["default"], "labels": {"zone": "a"}})

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

    model_config = examples({"attempts": [ATTEMPT_ID]})

    attempts: Annotated[list[UUID], Field(max_length=10_000)] | None = None


class HeartbeatView(View):
    """`cancel`: handlers that are asked to stop, `grace` how many seconds each has. `stale`: attempts that are gone."""

    cancel: list[UUID]
    grace: dict[str, float]
    stale: list[UUID]
    lease_seconds: float


class StopBody(Body):
    """`fail_kinds`: what is still held of these fails; the rest is given back."""

    model_config = examples({"fail_kinds": []})

    fail_kinds: list[Name] = Field(default_factory=list)


class CrashBody(Body):
    """`suspects`: attempts whose handlers were running when the process died; null: all."""

    model_config = examples({"suspects": [ATTEMPT_ID], "error": {"exit_code": -9}})

    suspects: Annotated[list[UUID], Field(max_length=10_000)] | None = None
    error: dict[str, Any] = Field(default_factory=dict)


class EndedView(View):
    ended: int


class ClaimBody(Body):
    """Up to `count` jobs (1) of the lanes. `wait`: seconds to wait when there are none. `request_id`: the same
    claim sent again, because the reply was lost, gets the same attempts.
    """

    model_config = examples({"runner_id": 1, "lanes": ["default"], "count": 10, "wait": 0, "request_id": OWNER})

    runner_id: StrictInt | StrictStr
    lanes: list[Name] | None = None
    count: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    wait: Annotated[float, Field(ge=0, le=60)] | None = None
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
