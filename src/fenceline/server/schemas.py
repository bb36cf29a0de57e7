"""What requests and answers look like, for validation and for the OpenAPI document.

Answers are JSON text of the database and are not built from these models; tests compare the two.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from fenceline.model.status import Status

#: The name of a kind, lane, tenant or role, as it stands in answers.
Name = Annotated[str, Field(pattern=r"^[a-z0-9_.-]{1,64}$", examples=["ingest"])]


_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d(:?\d\d)?)", re.ASCII)


def _only_text(value: Any) -> Any:
    # pydantic alone would take numbers, also in quotes, for seconds since 1970.
    if value is not None and not (isinstance(value, str) and _MOMENT.fullmatch(value)):
        raise ValueError("use ISO 8601 with a zone, like 2026-01-31T12:00:00Z")
    return value


#: A moment in a request: text with a zone, not a number of seconds.
Moment = Annotated[AwareDatetime, BeforeValidator(_only_text)]

ID = "01HQ-3KBR-T5GN-8W"
AT = "2026-01-31T12:00:00.123456+00:00"


class Body(BaseModel):
    """Of a request: what it does not know, it refuses."""

    model_config = ConfigDict(extra="forbid")


class View(BaseModel):
    """Of an answer: exactly these fields, always all of them."""

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


class EnqueueBody(Body):
    """Only `kind` is required; null is the same as left out."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "ingest",
                    "args": {"path": "s3://bucket/report.csv"},
                    "priority": 10,
                    "labels": {"project": "x"},
                }
            ]
        }
    )

    kind: StrictStr
    args: dict[str, Any] | None = None
    lane: StrictStr | None = None
    priority: StrictInt | None = None
    run_at: Moment | None = None
    expires_at: Moment | None = None
    dedupe_key: StrictStr | None = None
    max_attempts: StrictInt | None = None
    labels: dict[str, StrictStr] | None = None
    resource_lock: StrictStr | None = None
    key: StrictStr | None = None
    key_limit: StrictInt | None = None
    needs_approval: StrictBool | None = None
    snapshot: Any = None
    requires_hash: StrictStr | None = None
    after: list[StrictStr] | AfterBody | None = None
    identity: StrictStr | None = None

    def chosen_options(self) -> dict[str, Any]:
        """Everything but `kind` and `args` that was said, by the names of `EnqueueOptions`."""
        names = EnqueueBody.model_fields.keys() & self.model_fields_set - {"kind", "args"}
        options = {name: value for name in names if (value := getattr(self, name)) is not None}
        if isinstance(options.get("after"), AfterBody):
            options["after"] = options["after"].model_dump(exclude_none=True)
        return options


class JobOptionsBody(Body):
    """Options of jobs that are enqueued later, again and again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lane": "maintenance", "priority": 10}]})

    lane: StrictStr | None = None
    priority: StrictInt | None = None
    max_attempts: StrictInt | None = None
    labels: dict[str, StrictStr] | None = None
    resource_lock: StrictStr | None = None
    key: StrictStr | None = None
    key_limit: StrictInt | None = None
    needs_approval: StrictBool | None = None
    identity: StrictStr | None = None
    dedupe_key: StrictStr | None = None


class ReasonBody(Body):
    """Why; it stands in the audit, and in the job's error where it ends the job."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "not needed any more"}]})

    reason: Annotated[StrictStr, Field(max_length=2000)] | None = None


class VerbBody(ReasonBody):
    """`force` takes the job from its worker at once instead of asking the handler to stop; only cancel heeds it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "not needed any more", "force": False}]})

    force: StrictBool = False


class PriorityBody(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"priority": 10}]})

    priority: Annotated[StrictInt, Field(ge=-32768, le=32767)]


class JobView(View):
    """Everything the queue says about a job at this moment."""

    model_config = ConfigDict(
        title="Job",
        json_schema_extra={
            "examples": [
                {
                    "id": ID, "kind": "ingest", "status": "queued", "waiting_for": None, "lane": "default",
                    "priority": 0, "tenant": "default", "args": {"path": "s3://bucket/report.csv"}, "labels": None,
                    "attempt": 0, "max_attempts": 3, "created_at": AT, "created_by": "ci", "run_at": None,
                    "claimed_at": None, "started_at": None, "finished_at": None, "worker": None, "phase": None,
                    "progress": None, "result": None, "error": None, "errors": None, "cancel_requested_at": None,
                    "retry_of": None, "parent": None, "delivery": "postgres", "backend_job_id": None,
                }
            ]
        },
    )  # fmt: skip

    id: str
    kind: str
    status: Status
    waiting_for: Literal["dependencies", "key"] | None
    lane: str
    priority: int
    tenant: str
    args: dict[str, Any]
    labels: dict[str, str] | None
    attempt: int
    max_attempts: int
    created_at: AwareDatetime
    created_by: str | None
    run_at: AwareDatetime | None
    claimed_at: AwareDatetime | None
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None
    worker: str | None
    phase: str | None
    progress: Any
    result: Any
    error: dict[str, Any] | None
    errors: list[Any] | None
    cancel_requested_at: AwareDatetime | None
    retry_of: str | None
    parent: str | None
    delivery: str
    backend_job_id: str | None


class JobList(View):
    """Newest first. A page may be short, even empty, and still have a next one."""

    items: list[JobView]
    next_cursor: str | None


class HealthView(View):
    status: Literal["ok"]
