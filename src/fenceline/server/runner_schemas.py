"""Bodies and answers of runners: registration, heartbeats, claims. Those of attempts are in `attempt_schemas`."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, StrictBool, StrictInt, StrictStr

from fenceline.database.calls.lanes import LaneForWorker
from fenceline.server.schemas import Body, JobView, Name
from fenceline.server.views import View, examples, shows

ATTEMPT_ID = "6f1c1b0e-6f0a-4a53-9d3b-0c8f0a3f3f10"
OWNER = "0b8e4a36-9a8f-4d5e-8f0e-52b8a7a2f6a1"

Seconds = Annotated[float, Field(ge=0, le=1e9, strict=False)]
Text = Annotated[StrictStr, Field(max_length=200)]
Names = Annotated[list[Name], Field(max_length=1000)]
#: Kind and hash.
SignatureName = Annotated[StrictStr, Field(pattern=r"^[a-z0-9_.-]{1,64} [0-9a-f]{1,64}$")]
#: Bounded, because everybody who looks at the fleet receives them.
Labels = Annotated[
    dict[Annotated[StrictStr, Field(min_length=1, max_length=64)], Annotated[StrictStr, Field(max_length=256)]],
    Field(max_length=32),
]


class SignatureBody(Body):
    """A handler's parameters, each with whether it is required. `extra`: the handler ignores unknown ones."""

    takes: Annotated[dict[Text, StrictBool], Field(max_length=1000)]
    extra: StrictBool = False


class RunnerBody(Body):
    """`lanes` and `kinds`: what it serves; null for all. `lease_seconds`: after this silence its jobs go to others.
    `tells_starts`: it reports `running` before the handler of a last attempt runs, and when a claim's `details` ask for
    it (`tell_start`); in return, an attempt lost before that costs the job nothing. `signatures`: the parameters of its
    handlers, by "kind hash"; a job that it ends as `refused` then goes to a runner with a different handler.
    """

    model_config = examples({"name": "runner-1", "lanes": ["default"], "labels": {"zone": "a"}, "version": "1.4.2"})

    name: Text | None = None
    lanes: Names | None = None
    labels: Labels | None = None
    kinds: Names | None = None
    host: Text | None = None
    version: Text | None = None
    lease_seconds: Annotated[float, Field(ge=0.5, le=3600)] | None = None
    tells_starts: StrictBool = False
    signatures: Annotated[dict[SignatureName, SignatureBody], Field(max_length=1000)] | None = None


@shows(LaneForWorker)
class RunnerLaneView(View):
    """A lane, for its runner. `ready`: it has jobs for this runner; `suspects`: jobs wait to be run alone; `wanted`:
    others wait for its jobs, so claim no more than can start; `expected`: jobs for this runner are likely to come.
    `pause_seconds`: until its rate limit allows the next claim; null without a limit.
    """

    pause_seconds: float | None


class RunnerLanesView(View):
    lanes: list[RunnerLaneView]


class WaitBody(Body):
    """Wait up to `seconds` until one of the lanes may have a job. Claims with `notify` announce that somebody waits."""

    model_config = examples({"lanes": ["default"], "seconds": 20})

    lanes: Names
    seconds: Annotated[float, Field(ge=0, le=60)]


class WaitView(View):
    """The lanes that may have jobs; empty if the time is over."""

    lanes: list[str]


class RunnerView(View):
    """`tenant`: whose jobs it gets; null for all tenants."""

    id: int
    name: str
    lanes: list[str] | None
    labels: dict[str, str] | None
    kinds: list[str] | None
    tenant: str | None
    version: str | None
    lease_seconds: float


class HeartbeatBody(Body):
    """`attempts`: all that the runner holds. Others of its attempts, if claimed before the previous heartbeat, are
    released: the reply of their claim was lost. Without `attempts` only the lease is renewed, by a process that watches
    the runner from outside and sees when it is `blocked`: for how many seconds, and by which job's handler.
    """

    model_config = examples({"attempts": [ATTEMPT_ID]})

    attempts: Annotated[list[UUID], Field(max_length=10_000)] | None = None
    blocked: "BlockedBody | None" = None


class BlockedBody(Body):
    seconds: Seconds
    job: StrictStr | None = None


class HeartbeatView(View):
    """`cancel`: attempts whose handlers should stop, `grace`: the seconds each has. `stale`: attempts that are gone."""

    cancel: list[UUID]
    grace: dict[str, float]
    stale: list[UUID]
    lease_seconds: float


class StopBody(Body):
    """`fail_kinds`: jobs of these kinds that it still holds fail; the others are released."""

    model_config = examples({"fail_kinds": []})

    fail_kinds: Names = Field(default_factory=list)


class CrashBody(Body):
    """`suspects`: attempts whose handlers were running when the process died; null for all. If the process was killed
    because its event loop was blocked: `timed_out`, the attempts that blocked it past their own timeout, and
    `set_apart`, those that blocked it past the timeout of others.
    """

    model_config = examples({"suspects": [ATTEMPT_ID], "error": {"exit_code": -9}})

    suspects: Annotated[list[UUID], Field(max_length=10_000)] | None = None
    timed_out: Annotated[list[UUID], Field(max_length=10_000)] = Field(default_factory=list)
    set_apart: Annotated[list[UUID], Field(max_length=10_000)] = Field(default_factory=list)
    error: dict[str, Any] = Field(default_factory=dict)


class EndedView(View):
    ended: int


class ClaimBody(Body):
    """Up to `count` jobs (default 1) of the lanes. `wait`: seconds to wait if there are none. `request_id`: a repeat,
    because the reply was lost, gets the same attempts. `apart`: only suspects, each of which the runner gives its own
    process, whatever else it runs; such a claim does not wait. `notify`: if there are none,
    `POST /v1/runners/{id}/wait` hears of new ones for so many seconds.
    """

    model_config = examples({"runner_id": 1, "lanes": ["default"], "count": 10, "wait": 0, "request_id": OWNER})

    runner_id: StrictInt | StrictStr
    lanes: Names | None = None
    count: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    wait: Annotated[float, Field(ge=0, le=60)] | None = None
    request_id: Text | None = None
    kinds: Names | None = None
    apart: StrictBool = False
    notify: Annotated[float, Field(ge=0, le=600)] | None = None


class ClaimedView(View):
    """`timeout_seconds`: of the handler. `alone`: run nothing else in its process. `details`: null for a plain job."""

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
