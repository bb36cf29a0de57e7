"""A queue over HTTP: the same interface as `direct.py`, by the routes of the server."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from fenceline.cli.queue_values import Binding, Expiry, StatsName, bucket_seconds
from fenceline.database.decoding import read_record
from fenceline.doctor.finding import Finding, Limits
from fenceline.errors import FencelineError, NotFound, WrongStatus, refused_over_http
from fenceline.model.explanation import Explanation
from fenceline.model.job import (
    JobFilter,
    JobPage,
    JobRecord,
    Lane,
    LockRecord,
    LogLine,
    PhaseRecord,
    Retention,
    StepRecord,
    TenantLimit,
)
from fenceline.model.public_id import parse_id
from fenceline.model.records import AttemptRecord, JobEvent, WorkerRecord
from fenceline.model.schedule import Schedule
from fenceline.model.stats import ActiveJob, Backlog, ErrorRate, SlowJob, Stats, Throughput
from fenceline.model.status import Status

if TYPE_CHECKING:
    from fenceline.runtime.http_client import ServerAway

TIMEOUT_SECONDS = 30.0
PAGE = 100
MAX_TOKENS = 1000
STATS: Mapping[StatsName, type[Stats[Any]]] = {
    "backlog": Stats[Backlog],
    "active": Stats[ActiveJob],
    "errors": Stats[ErrorRate],
    "throughput": Stats[Throughput],
    "slow": Stats[SlowJob],
}


class ServerUnavailable(FencelineError):
    """The server cannot be reached, or is no Fenceline server."""


class NotAllowed(FencelineError):
    """The server does not accept the token, or the token's role may not do this."""


class RemoteQueue:
    """What each method does, `DirectQueue` says. It is audited under the token's name."""

    def __init__(self, url: str, token: str | None) -> None:
        try:
            from fenceline.runtime.http_client import Client
        except ImportError as error:
            raise FencelineError("--url needs httpx: pip install 'fenceline[cli]'") from error
        self._url = url.rstrip("/")
        self._client = Client(self._url, token or None, connect_seconds=TIMEOUT_SECONDS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.close()

    async def enqueue(self, kind: str, args: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        _refuse("--tenant", options.get("tenant"), "the job belongs to the token's tenant")
        _refuse("--timeout", options.get("timeout"), "the kind's own counts")
        body = {"kind": kind, "args": dict(args)} | {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in options.items()
        }
        key = body.pop("idempotency_key", None)  # over HTTP it is a header
        headers = {} if key is None else {"Idempotency-Key": str(key)}
        return str((await self._call("POST", "/v1/jobs", body=body, headers=headers))["id"])

    async def list_jobs(
        self, which: JobFilter, *, limit: int, cursor: str | None = None, fields: Sequence[str] = ()
    ) -> JobPage:
        query: dict[str, Any] = {
            "status": which.statuses,
            "kind": which.kinds,
            "lane": which.lanes,
            "tenant": which.tenants,
            "label": tuple(f"{name}:{value}" for name, value in (which.labels or {}).items()),
            "created_after": which.created_after and which.created_after.isoformat(),
            "created_before": which.created_before and which.created_before.isoformat(),
            "created_by": which.created_by,
            "parent": which.parent,
            "group": which.group,
            "key": which.key,
            "worker": which.worker,
            "phase": which.phase,
            "error": which.error,
            "limit": limit,
            "cursor": cursor,
            "fields": ",".join(fields),
        }
        page = await self._call("GET", "/v1/jobs", query={name: value for name, value in query.items() if value})
        return JobPage(items=[_listed(row) for row in page["items"]], next_cursor=page.get("next_cursor"))

    async def get_job(self, job_id: str) -> JobRecord:
        return read_record(JobRecord, await self._of_job("GET", job_id))

    async def explain(self, job_id: str) -> Explanation:
        return read_record(Explanation, await self._of_job("GET", job_id, "/explain"))

    async def snapshot(self, job_id: str) -> Any:
        return (await self._of_job("GET", job_id, "", query={"fields": "snapshot"}))["snapshot"]

    async def locks(self, job_id: str | None = None) -> list[LockRecord]:
        asked = self._call("GET", "/v1/locks") if job_id is None else self._of_job("GET", job_id, "/locks")
        return [read_record(LockRecord, row) for row in _items(await asked)]

    async def steps(self, job_id: str) -> list[StepRecord]:
        return [read_record(StepRecord, row) for row in await self._rows_of_job(job_id, "/steps")]

    async def phases(self, job_id: str) -> list[PhaseRecord]:
        return [read_record(PhaseRecord, row) for row in await self._rows_of_job(job_id, "/phases")]

    async def attempts(self, job_id: str) -> list[AttemptRecord]:
        return [read_record(AttemptRecord, row) for row in await self._rows_of_job(job_id, "/attempts")]

    async def events(self, job_id: str) -> list[JobEvent]:
        return [read_record(JobEvent, row) for row in await self._rows_of_job(job_id, "/events")]

    async def logs(self, job_id: str, after: LogLine | None) -> list[LogLine]:
        query = {} if after is None else {"cursor": f"{after.token}-{after.line}"}
        return [read_record(LogLine, row) for row in _items(await self._of_job("GET", job_id, "/logs", query=query))]

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

    async def run_now(self, job_id: str, *, reason: str | None) -> None:
        await self._of_job("POST", job_id, "/run-now", body={"reason": reason})

    async def signal(self, job_id: str, name: str, payload: Any) -> Status:
        body = {"payload": payload}
        return Status((await self._of_job("POST", job_id, f"/signals/{_segment(name)}", body=body))["status"])

    async def move(self, job_id: str, lane: str, *, reason: str | None) -> None:
        await self._of_job("POST", job_id, "/move", body={"lane": lane, "reason": reason})

    async def delete(self, job_id: str) -> None:
        # The route cancels what is unfinished; what is finished stays so.
        job = await self.get_job(job_id)
        if not job.status.is_final:
            raise WrongStatus(f"job {job.id} cannot be deleted: it is {job.status}, and must be finished")
        await self._of_job("DELETE", job_id)

    async def erase(self, job_id: str, *, reason: str | None) -> None:
        await self._of_job("POST", job_id, "/erase", body={"reason": reason})

    async def stats(self, what: StatsName, *, seconds: float) -> Stats[Any]:
        query: dict[str, float] = {} if what in {"backlog", "active"} else {"seconds": seconds}
        if what == "throughput":
            query["bucket_seconds"] = bucket_seconds(seconds)
        return read_record(STATS[what], await self._call("GET", f"/v1/stats/{what}", query=query))

    async def lanes(self) -> list[Lane]:
        return [read_record(Lane, row) for row in _items(await self._call("GET", "/v1/admin/workers/lanes"))]

    async def set_lane(self, name: str, changes: Mapping[str, Any]) -> Lane:
        _refuse("--default-priority", changes.get("default_priority"), "it is a setting of the database")
        try:
            return await self._lane("PATCH", name, changes)
        except NotFound:
            return await self._lane("POST", name, changes)

    async def open_lane(self, name: str, *, is_open: bool) -> Lane:
        return await self._lane("PATCH", name, {"enabled": is_open})

    async def _lane(self, method: str, name: str, changes: Mapping[str, Any]) -> Lane:
        return read_record(
            Lane, await self._call(method, f"/v1/admin/workers/lanes/{_segment(name)}", body=dict(changes))
        )

    async def lane_rates(self) -> dict[str, float]:
        return {row["lane"]: row["per_second"] for row in _items(await self._call("GET", "/v1/stats/rates"))}

    async def workers(self, *, stopped: bool) -> list[WorkerRecord]:
        if stopped:
            raise FencelineError("the server lists only workers that are running: use --dsn to see stopped ones")
        fleet = await self._call("GET", "/v1/admin/workers/status")
        found = [(row, False) for row in fleet["workers"]] + [(row, True) for row in fleet["runners"]]
        return [read_record(WorkerRecord, {**row, "runner": runner, "running": row["in_use"]}) for row, runner in found]

    async def depth(self, lane: str | None) -> int:
        query = {} if lane is None else {"lane": lane}
        return int((await self._call("GET", "/v1/admin/workers/depth", query=query))["depth"])

    async def drain(self, *, reason: str | None) -> None:
        await self._call("POST", "/v1/admin/drain", body={"reason": reason})

    async def resume(self) -> None:
        await self._call("POST", "/v1/admin/resume", body={})

    async def rekey(self) -> str:
        return str((await self._call("POST", "/v1/admin/rekey"))["id"])

    async def sweep(self) -> int:
        return int((await self._call("POST", "/v1/admin/sweep"))["swept"])

    async def prune(self, limit: int) -> int:
        return int((await self._call("POST", "/v1/admin/prune", body={"limit": limit}))["pruned"])

    async def tenant_limits(self) -> list[TenantLimit]:
        return [read_record(TenantLimit, row) for row in _items(await self._call("GET", "/v1/admin/limits"))]

    async def set_tenant_limit(self, max_jobs: int | None, *, tenant: str | None) -> None:
        await self._call("PUT", "/v1/admin/limits", body={"max_jobs": max_jobs, "tenant": tenant})

    async def approval_by_other(self) -> bool:
        return bool((await self._call("GET", "/v1/admin/approval"))["by_other"])

    async def set_approval(self, *, by_other: bool) -> None:
        await self._call("PUT", "/v1/admin/approval", body={"by_other": by_other})

    async def retention(self) -> list[Retention]:
        return [read_record(Retention, row) for row in _items(await self._call("GET", "/v1/admin/retention"))]

    async def set_retention(self, seconds: float | None, *, kind: str | None, status: str | None) -> None:
        await self._call("PUT", "/v1/admin/retention", body={"seconds": seconds, "kind": kind, "status": status})

    async def examine(self, limits: Limits) -> list[Finding]:
        query = {
            "patience": limits.patience_seconds,
            "max_dead_rows": limits.dead_rows,
            "max_notifications": limits.notification_queue,
        }
        answer = await self._call("GET", "/v1/admin/doctor", query=query)
        return [read_record(Finding, row) for row in answer["findings"]]

    async def schedules(self) -> list[Schedule]:
        return [_schedule(row) for row in await self._rows("/v1/schedules")]

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
        self, *, role: str, tenant: str | None, name: str | None, expires_at: Expiry, bound: Binding
    ) -> dict[str, Any]:
        ends = expires_at.isoformat() if isinstance(expires_at, datetime) else expires_at
        given = {
            "role": role, "tenant": tenant, "name": name, "expires_at": ends,
            "lanes": bound.lanes, "kinds": bound.kinds,
        }  # fmt: skip
        body = {key: value for key, value in given.items() if value is not None}
        made = await self._call("POST", "/v1/tokens", body=body)
        return {"token": made.pop("token"), **made}

    async def tokens(self, tenant: str | None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        query: dict[str, Any] = {"limit": PAGE}
        while len(found) < MAX_TOKENS:
            page = await self._call("GET", "/v1/tokens", query=query)
            found += [row for row in page["items"] if tenant in (None, row["tenant"])]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        return found[:MAX_TOKENS]

    async def revoke_token(self, token_id: int) -> None:
        await self._call("DELETE", f"/v1/tokens/{token_id}")

    async def _rows(self, path: str) -> list[Any]:
        """Of all pages of a list."""
        found: list[Any] = []
        query: dict[str, Any] = {}
        while True:
            page = await self._call("GET", path, query=query)
            found += page["items"]
            query = {"cursor": page.get("next_cursor")}
            if query["cursor"] is None:
                return found

    async def _rows_of_job(self, job_id: str, rest: str) -> list[Any]:
        parse_id(job_id)  # the server would only say that there is no such job
        return await self._rows(f"/v1/jobs/{job_id}{rest}")

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
        from httpx import InvalidURL

        from fenceline.runtime.http_client import Forbidden, ServerAway, TokenRefused

        try:
            text = None if body is None else json.dumps(body)
            return await self._client.ask_once(
                method, path, text, query=query, headers=headers, answer_seconds=TIMEOUT_SECONDS
            )
        except ServerAway as error:
            raise self._away(error) from error
        except InvalidURL as error:
            raise self._unreachable(error) from error
        except TokenRefused as error:
            raise NotAllowed(f"{error}: give a valid token with --token (or FENCELINE_TOKEN)") from error
        except Forbidden as error:
            raise NotAllowed(f"{error}: this token's role may not do that; use a token of another role") from error

    def _away(self, error: "ServerAway") -> FencelineError:
        if error.problem is not None:  # it is there, and says why not: draining, say
            return refused_over_http(error.problem)
        if error.__cause__ is not None:
            return self._unreachable(error.__cause__)
        return ServerUnavailable(f"{self._url} answered {error.status}, which no Fenceline server says: check --url")

    def _unreachable(self, error: BaseException) -> FencelineError:
        return ServerUnavailable(
            f"the server {self._url} cannot be reached ({str(error) or type(error).__name__}): "
            "check --url (or FENCELINE_URL), and that `fenceline server` is running there"
        )


def _listed(row: Mapping[str, Any]) -> JobRecord:
    """A job of a list, where args and result are there only when they are asked for."""
    return read_record(JobRecord, {"args": {}, "result": None, **row})


def _schedule(row: Mapping[str, Any]) -> Schedule:
    """What the server keeps to itself is not shown; the next runs are those after this machine's now."""
    now = datetime.now(UTC)
    return read_record(Schedule, {"revision": 0, "settled_at": now, "now": now, **row})


def _refuse(option: str, value: object, why: str) -> None:
    """Of options that a server does not take."""
    if value is not None:
        raise FencelineError(f"{option} is not available over --url ({why}): leave it out, or use --dsn")


def _items(answer: Any) -> list[Any]:
    return list(answer["items"])


def _segment(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")
