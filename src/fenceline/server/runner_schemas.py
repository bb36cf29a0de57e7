"""What runners send and get when they register, live and claim; what they write for attempts: `attempt_schemas`."""

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
#: Everybody who looks at the fleet gets them.
Labels = Annotated[
    dict[Annotated[StrictStr, Field(min_length=1, max_length=64)], Annotated[StrictStr, Field(max_length=256)]],
    Field(max_length=32),
]


class SignatureBody(Body):
    """What a handler takes: each parameter with whether it must be given; `extra`: it ignores what it does not know."""

    takes: Annotated[dict[Text, StrictBool], Field(max_length=1000)]
    extra: StrictBool = False


class RunnerBody(Body):
    """`lanes` and `kinds`: what it serves; null: all. `lease_seconds`: after such a silence its jobs go to others.
    `tells_starts`: it says `running` before the handler of a last attempt runs, and where a claim's `details` ask for
    it (`tell_start`); in return an attempt that is lost before that costs the job nothing. `signatures`: what its
    handlers take, by "kind hash"; a job that it ends as `refused` then goes to somebody whose handler is another.
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

    def known_signatures(self) -> dict[str, dict[str, Any]] | None:
        return None if self.signatures is None else {name: said.model_dump() for name, said in self.signatures.items()}


@shows(LaneForWorker)
class RunnerLaneView(View):
    """A lane as its runner must know it. `ready`: it has jobs for this runner; `suspects`: jobs wait to be run alone;
    `wanted`: others wait for its jobs, so take no more than can start; `expected`: jobs for this runner are to be
    expected there. `pause_seconds`: until its rate limit allows the next claim; null: it has none.
    """

    pause_seconds: float | None


class RunnerLanesView(View):
    lanes: list[RunnerLaneView]


class WaitBody(Body):
    """Up to `seconds`, until one of the lanes may have got a job. Claims with `notify` say that somebody waits."""

    model_config = examples({"lanes": ["default"], "seconds": 20})

    lanes: Names
    seconds: Annotated[float, Field(ge=0, le=60)]


class WaitView(View):
    """Which lanes may have jobs; none: the time is over."""

    lanes: list[str]


class RunnerView(View):
    """`tenant`: whose jobs it gets; null: everybody's."""

    id: int
    name: str
    lanes: list[str] | None
    labels: dict[str, str] | None
    kinds: list[str] | None
    tenant: str | None
    version: str | None
    lease_seconds: float


class HeartbeatBody(Body):
    """`attempts`: all that the runner holds. Attempts of its that are not named, and were claimed before its heartbeat
    before this one, are given back: the reply of their claim was lost. Left out: only the lease is renewed, by somebody
    who keeps it from outside. That one sees when the runner is `blocked`: for how many seconds, and by whose handler.
    """

    model_config = examples({"attempts": [ATTEMPT_ID]})

    attempts: Annotated[list[UUID], Field(max_length=10_000)] | None = None
    blocked: "BlockedBody | None" = None


class BlockedBody(Body):
    seconds: Seconds
    job: StrictStr | None = None


class HeartbeatView(View):
    """`cancel`: handlers that are asked to stop, `grace` how many seconds each has. `stale`: attempts that are gone."""

    cancel: list[UUID]
    grace: dict[str, float]
    stale: list[UUID]
    lease_seconds: float


class StopBody(Body):
    """`fail_kinds`: what is still held of these fails; the rest is given back."""

    model_config = examples({"fail_kinds": []})

    fail_kinds: Names = Field(default_factory=list)


class CrashBody(Body):
    """`suspects`: attempts whose handlers were running when the process died; null: all. Of a process that was given up
    because its event loop was blocked: `timed_out`, who blocked it past their timeout, and `set_apart`, who did so past
    the timeout of others.
    """

    model_config = examples({"suspects": [ATTEMPT_ID], "error": {"exit_code": -9}})

    suspects: Annotated[list[UUID], Field(max_length=10_000)] | None = None
    timed_out: Annotated[list[UUID], Field(max_length=10_000)] = Field(default_factory=list)
    set_apart: Annotated[list[UUID], Field(max_length=10_000)] = Field(default_factory=list)
    error: dict[str, Any] = Field(default_factory=dict)


class EndedView(View):
    ended: int


class ClaimBody(Body):
    """Up to `count` jobs (1) of the lanes. `wait`: seconds to wait when there are none. `request_id`: the same
    claim sent again, because the reply was lost, gets the same attempts. `apart`: only suspects, each of which the
    runner gives a process of its own, whatever else it runs; such a claim does not wait. `notify`: when there are none,
    `POST /v1/runners/{id}/wait` is told of new ones for so many seconds.
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
    """`timeout_seconds` of the handler; `alone`: run nothing beside it in its process; `details`: what a plain job has
    not.
    """

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
