"""A queue over HTTP: the same interface as `direct.py`, by the routes of the server."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from fenceline.cli.queue import JobFilter
from fenceline.doctor.finding import Finding, Limits
from fenceline.errors import SQLSTATES, FencelineError, NotFound, RefusedError
from fenceline.model.job import JobPage, JobRecord, Lane, LogLine, Retention, TenantLimit
from fenceline.model.observed import AttemptRecord, JobEvent, WorkerRecord
from fenceline.model.public_id import parse_id
from fenceline.model.schedule import Schedule
from fenceline.model.status import Status

if TYPE_CHECKING:
    import httpx

R = TypeVar("R")

TIMEOUT_SECONDS = 30.0
PAGE = 100
MOST_TOKENS = 1000
_BY_CODE = {refusal.code: refusal for refusal in SQLSTATES.values()}


class ServerUnavailable(FencelineError):  # noqa: N818 - as the exceptions in errors.py
    """The server cannot be reached, or is no Fenceline server."""


class NotAllowed(FencelineError):  # noqa: N818 - as above
    """The server does not accept the token, or the token's role may not do this."""


class RemoteQueue:
    """See `Queue`. What it does is audited under the token's name."""

    def __init__(self, url: str, token: str | None) -> None:
        try:
            import httpx  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise FencelineError("--url needs httpx: pip install 'fenceline[cli]'") from error
        self._url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.AsyncClient(base_url=self._url, headers=headers, timeout=TIMEOUT_SECONDS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def enqueue(self, kind: str, args: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        _refuse("--tenant", options.get("tenant"), "the job belongs to the token's tenant")
        _refuse("--timeout", options.get("timeout"), "the kind's own counts")
        body = {"kind": kind, "args": dict(args)} | {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in options.items()
        }
        key = body.pop("idempotency_key", None)  # over HTTP it is a header
        headers = {} if key is None else {"Idempotency-Key": str(key)}
        return str((await self._call("POST", "/v1/jobs", body=body, headers=headers))["id"])

    async def list_jobs(self, which: JobFilter, *, limit: int, cursor: str | None = None) -> JobPage:
        query: dict[str, Any] = {
            "status": which.status,
            "kind": which.kind,
            "lane": which.lane,
            "tenant": which.tenant,
            "label": tuple(f"{name}:{value}" for name, value in (which.labels or {}).items()),
            "created_after": which.created_after and which.created_after.isoformat(),
            "created_before": which.created_before and which.created_before.isoformat(),
            "limit": limit,
            "cursor": cursor,
        }
        page = await self._call("GET", "/v1/jobs", query={name: value for name, value in query.items() if value})
        return JobPage(items=[_record(JobRecord, row) for row in page["items"]], next_cursor=page.get("next_cursor"))

    async def get_job(self, job_id: str) -> JobRecord:
        return _record(JobRecord, await self._of_job("GET", job_id))

    async def attempts(self, job_id: str) -> list[AttemptRecord]:
        return [_record(AttemptRecord, row) for row in _items(await self._of_job("GET", job_id, "/attempts"))]

    async def events(self, job_id: str) -> list[JobEvent]:
        return [_record(JobEvent, row) for row in _items(await self._of_job("GET", job_id, "/events"))]

    async def logs(self, job_id: str, after: LogLine | None) -> list[LogLine]:
        query = {} if after is None else {"cursor": f"{after.token}-{after.line}"}
        return [_record(LogLine, row) for row in _items(await self._of_job("GET", job_id, "/logs", query=query))]

    async def cancel(self, job_id: str, *, reason: str | None, force: bool) -> Status:
        return Status(
            (await self._of_job("POST", job_id, "/cancel", body={"reason": reason, "force": force}))["status"]
        )

    async def retry(self, job_id: str) -> str:
        return str((await self._of_job("POST", job_id, "/retry", body={}))["id"])

    async def approve(self, job_id: str, *, reason: str | None) -> Status:
        return Status((await self._of_job("POST", job_id, "/approve", body={"reason": reason}))["status"])

    async def reject(self, job_id: str, *, reason: str | None) -> Status:
        return Status((await self._of_job("POST", job_id, "/reject", body={"reason": reason}))["status"])

    async def reprioritise(self, job_id: str, priority: int) -> None:
        parse_id(job_id)
        await self._call("PATCH", f"/v1/admin/workers/jobs/{job_id}/priority", body={"priority": priority})

    async def erase(self, job_id: str, *, reason: str | None) -> None:
        await self._of_job("POST", job_id, "/erase", body={"reason": reason})

    async def lanes(self) -> list[Lane]:
        return [_record(Lane, row) for row in _items(await self._call("GET", "/v1/admin/workers/lanes"))]

    async def set_lane(self, name: str, changes: Mapping[str, Any], *, create: bool) -> Lane:
        _refuse("--default-priority", changes.get("default_priority"), "it is a setting of the database")
        answer = await self._call(
            "POST" if create else "PATCH", f"/v1/admin/workers/lanes/{_segment(name)}", body=dict(changes)
        )
        return _record(Lane, answer)

    async def lane_rates(self) -> dict[str, float]:
        return {row["lane"]: row["per_second"] for row in _items(await self._call("GET", "/v1/stats/rates"))}

    async def workers(self, *, stopped: bool) -> list[WorkerRecord]:
        if stopped:
            raise FencelineError("the server tells of workers that are signed on only: use --dsn to see others")
        fleet = await self._call("GET", "/v1/admin/workers/status")
        found = [(row, False) for row in fleet["workers"]] + [(row, True) for row in fleet["runners"]]
        return [_record(WorkerRecord, {**row, "runner": runner, "running": row["in_use"]}) for row, runner in found]

    async def depth(self, lane: str | None) -> int:
        query = {} if lane is None else {"lane": lane}
        return int((await self._call("GET", "/v1/admin/workers/depth", query=query))["depth"])

    async def drain(self, *, reason: str | None) -> None:
        await self._call("POST", "/v1/admin/drain", body={"reason": reason})

    async def resume(self) -> None:
        await self._call("POST", "/v1/admin/resume", body={})

    async def sweep(self) -> int:
        return int((await self._call("POST", "/v1/admin/sweep"))["swept"])

    async def prune(self, limit: int) -> int:
        return int((await self._call("POST", "/v1/admin/prune", body={"limit": limit}))["pruned"])

    async def tenant_limits(self) -> list[TenantLimit]:
        return [_record(TenantLimit, row) for row in _items(await self._call("GET", "/v1/admin/limits"))]

    async def set_tenant_limit(self, max_jobs: int | None, *, tenant: str | None) -> None:
        await self._call("PUT", "/v1/admin/limits", body={"max_jobs": max_jobs, "tenant": tenant})

    async def retention(self) -> list[Retention]:
        return [_record(Retention, row) for row in _items(await self._call("GET", "/v1/admin/retention"))]

    async def set_retention(self, seconds: float | None, *, kind: str | None, status: str | None) -> None:
        await self._call("PUT", "/v1/admin/retention", body={"seconds": seconds, "kind": kind, "status": status})

    async def examine(self, limits: Limits) -> list[Finding]:
        query = {
            "patience": limits.patience_seconds,
            "max_dead_rows": limits.dead_rows,
            "max_notifications": limits.notification_queue,
        }
        answer = await self._call("GET", "/v1/admin/doctor", query=query)
        return [_record(Finding, row) for row in answer["findings"]]

    async def schedules(self) -> list[Schedule]:
        return [_schedule(row) for row in _items(await self._call("GET", "/v1/schedules"))]

    async def set_schedule(self, name: str, settings: Mapping[str, Any]) -> Schedule:
        try:
            return _schedule(await self._of_schedule("PATCH", name, body=dict(settings)))
        except NotFound:
            return _schedule(await self._call("POST", "/v1/schedules", body={"name": name, **settings}))

    async def pause_schedule(self, name: str, *, paused: bool) -> None:
        await self._of_schedule("PATCH", name, body={"paused": paused})

    async def run_schedule(self, name: str) -> str:
        return str((await self._of_schedule("POST", name, "/run"))["id"])

    async def delete_schedule(self, name: str) -> None:
        await self._of_schedule("DELETE", name)

    async def create_token(
        self, *, role: str, tenant: str | None, name: str | None, expires_at: datetime | None
    ) -> dict[str, Any]:
        given = {"role": role, "tenant": tenant, "name": name, "expires_at": expires_at and expires_at.isoformat()}
        made = await self._call("POST", "/v1/tokens", body={key: value for key, value in given.items() if value})
        return {"token": made.pop("token"), **made}

    async def tokens(self, tenant: str | None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        query: dict[str, Any] = {"limit": PAGE}
        while len(found) < MOST_TOKENS:
            page = await self._call("GET", "/v1/tokens", query=query)
            found += [row for row in page["items"] if tenant in (None, row["tenant"])]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        return found[:MOST_TOKENS]

    async def revoke_token(self, token_id: int) -> None:
        await self._call("DELETE", f"/v1/tokens/{token_id}")

    async def _of_schedule(self, method: str, name: str, rest: str = "", **more: Any) -> Any:
        return await self._call(method, f"/v1/schedules/{_segment(name)}{rest}", **more)

    async def _of_job(self, method: str, job_id: str, rest: str = "", **more: Any) -> Any:
        parse_id(job_id)  # the server would only say that there is no such job
        return await self._call(method, f"/v1/jobs/{job_id}{rest}", **more)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        import httpx  # noqa: PLC0415 - an extra

        try:
            answer = await self._client.request(method, path, params=query, json=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServerUnavailable(
                f"the server {self._url} cannot be reached ({str(error) or type(error).__name__}): "
                "check --url (or FENCELINE_URL), and that `fenceline server` is running there"
            ) from error
        if answer.is_success:
            return answer.json() if answer.content else None
        raise _refusal(answer, self._url)


def _refusal(answer: "httpx.Response", url: str) -> FencelineError:
    try:
        problem = answer.json()
        message = problem.get("detail") or problem.get("title") or answer.reason_phrase
        code = problem.get("code")
    except (ValueError, AttributeError):
        return ServerUnavailable(
            f"{url} answered {answer.status_code} {answer.reason_phrase}, which no Fenceline server says: check --url"
        )
    match code:
        case "unauthenticated":
            return NotAllowed(f"{message}: give a valid token with --token (or FENCELINE_TOKEN)")
        case "forbidden":
            return NotAllowed(f"{message}: this token's role may not do that; use a token of another role")
    return _BY_CODE.get(problem.get("reason") or code, RefusedError)(message)


def _record(cls: type[R], row: Mapping[str, Any]) -> R:
    """A frozen record from JSON; what the server does not say is None, what this program does not know is left out."""
    values: dict[str, Any] = {}
    for field in fields(cls):  # type: ignore[arg-type]  # every record is a dataclass
        value = row.get(field.name)
        if isinstance(value, str):
            if field.type is Status:
                value = Status(value)
            elif field.type in (datetime, datetime | None):
                value = datetime.fromisoformat(value)
        values[field.name] = value
    return cls(**values)


def _schedule(row: Mapping[str, Any]) -> Schedule:
    """What the server keeps to itself is not shown; the next runs are those after this machine's now."""
    now = datetime.now(UTC).isoformat()
    known = {field.name for field in fields(Schedule)}
    told = {name: value for name, value in row.items() if name in known}
    return Schedule.from_json({"revision": 0, "settled_at": now, "now": now, **told})


def _refuse(option: str, value: object, why: str) -> None:
    """Of options that a server does not take."""
    if value is not None:
        raise FencelineError(f"{option} cannot be said over a server ({why}): leave it out, or use --dsn")


def _items(answer: Any) -> list[Any]:
    return list(answer["items"])


def _segment(name: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 - keeps the import of this module light

    return quote(name, safe="")
