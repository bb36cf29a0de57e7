"""Bodies of requests, and jobs in answers: for validation and for the OpenAPI document."""

import re
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from fenceline.model.identity import Identity
from fenceline.model.job import JobRecord
from fenceline.server.views import View, examples, shows

#: The name of a kind, lane, tenant or role.
Name = Annotated[str, Field(pattern=r"^[a-z0-9_.-]{1,64}$", examples=["ingest"])]


_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d(:?\d\d)?)", re.ASCII)


def _only_text(value: Any) -> Any:
    # pydantic would read numbers, even in quotes, as seconds since 1970.
    if value is not None and not (isinstance(value, str) and _MOMENT.fullmatch(value)):
        raise ValueError("use ISO 8601 with a zone, like 2026-01-31T12:00:00Z")
    return value


#: A time in a request: text with a zone, not a number of seconds.
Moment = Annotated[AwareDatetime, BeforeValidator(_only_text)]

#: A time in a request, relative to now.
Seconds = Annotated[float, Field(strict=True, ge=0, le=1_000_000_000, description="Seconds from now on.")]

ID = "01HQ-3KBR-T5GN-8WX"
AT = "2026-01-31T12:00:00.123456+00:00"


class Body(BaseModel):
    """The body of a request. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class ProblemField(BaseModel):
    field: str
    message: str


class ProblemView(BaseModel):
    """RFC 9457. `code` is for programs, `detail` for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    reason: str | None = None
    holder: str | None = None
    job_status: str | None = None
    tenant: str | None = None
    errors: list[ProblemField] | None = None


class AfterBody(Body):
    """Jobs to wait for, and whether all must succeed or just end."""

    jobs: list[StrictStr] | None = None
    group: StrictStr | None = None
    policy: Literal["success", "always"] | None = None


Address = Annotated[
    StrictStr | dict[str, StrictStr],
    Field(description="The name of the worker or runner that must run it, or an object of labels that it must have."),
]


class HashBody(Body):
    """The hash of an earlier job's snapshot."""

    job: StrictStr


class JobOptionsBody(Body):
    """Options of jobs that are enqueued later and repeatedly."""

    model_config = examples({"lane": "maintenance", "priority": 10})

    lane: StrictStr | None = None
    priority: StrictInt | None = None
    max_attempts: StrictInt | None = None
    labels: dict[str, StrictStr] | None = None
    resource_lock: StrictStr | None = None
    key: StrictStr | None = None
    key_limit: StrictInt | None = None
    needs_approval: StrictBool | None = None
    identity: StrictStr | None = None
    runner: Address | None = None
    dedupe_key: StrictStr | None = None
    dedupe_until: Literal["claimed", "finished"] | None = None


class EnqueueBody(JobOptionsBody):
    """Only `kind` is required; null is the same as omitted."""

    model_config = examples(
        {"kind": "ingest", "args": {"path": "s3://bucket/report.csv"}, "priority": 10, "labels": {"project": "x"}}
    )

    kind: StrictStr
    args: dict[str, Any] | None = None
    run_at: Moment | None = None
    run_in: Seconds | None = None
    expires_at: Moment | None = None
    snapshot: Any = None
    requires_hash: StrictStr | HashBody | None = None
    after: list[StrictStr] | AfterBody | None = None

    def chosen_options(self) -> dict[str, Any]:
        """All options that were set, by the names of `EnqueueOptions`."""
        names = EnqueueBody.model_fields.keys() & self.model_fields_set - {"kind", "args"}
        options = {name: value for name in names if (value := getattr(self, name)) is not None}
        if isinstance(options.get("after"), AfterBody):
            options["after"] = options["after"].model_dump(exclude_none=True)
        if isinstance(options.get("requires_hash"), HashBody):
            options["requires_hash"] = options["requires_hash"].model_dump()
        return options


def with_role(options: dict[str, Any] | None, identity: Identity) -> dict[str, Any] | None:
    """Options with an identity get the caller's role, because a kind may restrict who can use an identity."""
    if not options or options.get("identity") is None:
        return options
    return {**options, "actor_role": identity.role}


class ReasonBody(Body):
    """Reason, recorded in the audit log, and in the job's error if this ends the job."""

    model_config = examples({"reason": "not needed any more"})

    reason: Annotated[StrictStr, Field(max_length=2000)] | None = None


class VerbBody(ReasonBody):
    """`force` takes the job from its worker at once instead of asking the handler to stop; only for cancel."""

    model_config = examples({"reason": "not needed any more", "force": False})

    force: StrictBool = False


class MoveBody(ReasonBody):
    model_config = examples({"lane": "maintenance", "reason": "it may take its time"})

    lane: Name


class PriorityBody(Body):
    model_config = examples({"priority": 10})

    priority: Annotated[StrictInt, Field(ge=-32768, le=32767)]


@shows(JobRecord, may_lack=True)
class JobView(View):
    """Everything the queue says about a job at this moment."""

    model_config = examples(
        {
            "id": ID, "kind": "ingest", "status": "queued", "waiting_for": None, "lane": "default",
            "priority": 0, "tenant": "default", "args": {"path": "s3://bucket/report.csv"}, "labels": None,
            "attempt": 0, "max_attempts": 3, "created_at": AT, "created_by": "ci", "run_at": None,
            "claimed_at": None, "started_at": None, "finished_at": None, "worker": None, "phase": None,
            "progress": None, "result": None, "error": None, "errors": None, "cancel_requested_at": None,
            "retry_of": None, "parent": None, "delivery": "postgres", "backend_job_id": None,
            "runner": None,
        },
        title="Job",
    )  # fmt: skip

    waiting_for: Annotated[str | None, Field(description="`dependencies`, `key`, `signal`, or `lock` and its name.")]
    snapshot: Annotated[Any, Field(description="Only when `fields=snapshot` asks for it.")] = None


class CutView(BaseModel):
    """Replaces a value that is too long for a list; an error keeps `code`, `type` and `message`."""

    model_config = ConfigDict(title="Cut", extra="allow")

    cut: Annotated[dict[str, int], Field(alias="$cut", examples=[{"bytes": 1_048_576}])]


class JobItemView(JobView):
    """Like a job, but with `args` and `result` only if `fields` asks for them."""

    model_config = ConfigDict(title="JobItem")

    args: dict[str, Any] = Field(default_factory=dict)
    result: Any = None
    errors: list[Any] | CutView | None


class JobList(View):
    """Newest first. A page may be short, even empty, and still have a next one."""

    items: list[JobItemView]
    next_cursor: str | None


class HealthView(View):
    status: Literal["ok"]
