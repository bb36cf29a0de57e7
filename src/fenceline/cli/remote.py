"""A queue over HTTP: the parts of the client that commands use, mapped to the server's routes."""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from fenceline.cli.remote_server import RemoteServer, refuse, segment
from fenceline.database.decoding import read_record
from fenceline.doctor.finding import Finding, Limits
from fenceline.errors import FencelineError, NotFound, WrongStatus
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
from fenceline.model.public_id import format_id, parse_id
from fenceline.model.records import AttemptRecord, JobEvent, WorkerRecord
from fenceline.model.schedule import Schedule
from fenceline.model.stats import ActiveJob, Backlog, ErrorRate, SlowJob, Stats, Throughput
from fenceline.model.status import Status

T = TypeVar("T")

MAX_TOKENS = 1000
#: Filters whose name in a query is not that of the field.
SINGULAR = {"statuses": "status", "kinds": "kind", "lanes": "lane", "tenants": "tenant", "labels": "label"}


class RemoteQueue:
    """The same methods as `DirectQueue` and the client's parts. The audit log names the token as the actor."""

    def __init__(self, url: str, token: str | None) -> None:
        self._server = RemoteServer(url, token)
        self.lanes = RemoteLanes(self._server)
        self.schedules = RemoteSchedules(self._server)
        self.stats = RemoteStats(self._server)
        self.system = RemoteSystem(self._server)

    async def close(self) -> None:
        await self._server.close()

    def job(self, job_id: str) -> "RemoteJob":
        # Parsed here, to report a typo as one: for the server it is only a job that does not exist.
        return RemoteJob(self._server, format_id(parse_id(job_id)))

    async def enqueue(self, kind: str, args: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        refuse("--tenant", options.get("tenant"), "the job belongs to the token's tenant")
        refuse("--timeout", options.get("timeout"), "the kind's own counts")
        body = {"kind": kind, "args": dict(args)} | {name: _plain(value) for name, value in options.items()}
        key = body.pop("idempotency_key", None)  # over HTTP it is a header
        headers = {} if key is None else {"Idempotency-Key": str(key)}
        return str((await self._server.call("POST", "/v1/jobs", body=body, headers=headers))["id"])

    async def list_jobs(
        self, which: JobFilter, *, limit: int, cursor: str | None = None, fields: Sequence[str] = ()
    ) -> JobPage:
        query = {
            SINGULAR.get(field.name, field.name): getattr(which, field.name) for field in dataclasses.fields(which)
        } | {
            "label": [f"{name}:{value}" for name, value in (which.labels or {}).items()],
            "limit": limit,
            "cursor": cursor,
            "fields": ",".join(fields),
        }
        given = {name: _plain(value) for name, value in query.items() if value}
        page = await self._server.call("GET", "/v1/jobs", query=given)
        # The server leaves out args and result unless asked for them.
        items = [read_record(JobRecord, {"args": {}, "result": None, **row}) for row in page["items"]]
        return JobPage(items=items, next_cursor=page.get("next_cursor"))

    async def examine(self, limits: Limits) -> list[Finding]:
        query = {
            "patience": limits.patience_seconds,
            "max_dead_rows": limits.dead_rows,
            "max_notifications": limits.notification_queue,
        }
        answer = await self._server.call("GET", "/v1/admin/doctor", query=query)
        return [read_record(Finding, row) for row in answer["findings"]]

    async def create_token(self, **settings: Any) -> dict[str, Any]:
        body = {name: _plain(value) for name, value in settings.items() if value is not None}
        made = await self._server.call("POST", "/v1/tokens", body=body)
        return {"token": made.pop("token"), **made}

    async def tokens(self, tenant: str | None) -> list[dict[str, Any]]:
        found = await self._server.records(dict[str, Any], "/v1/tokens")
        return [row for row in found if tenant in (None, row["tenant"])][:MAX_TOKENS]

    async def revoke_token(self, token_id: int) -> None:
        await self._server.call("DELETE", f"/v1/tokens/{token_id}")


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


class RemoteJob:
    def __init__(self, server: RemoteServer, job_id: str) -> None:
        self.id = job_id
        self._server = server
        self._path = f"/v1/jobs/{job_id}"

    async def get(self) -> JobRecord:
        return read_record(JobRecord, await self._server.call("GET", self._path))

    async def explain(self) -> Explanation:
        return read_record(Explanation, await self._server.call("GET", f"{self._path}/explain"))

    async def snapshot(self) -> Any:
        return (await self._server.call("GET", self._path, query={"fields": "snapshot"}))["snapshot"]

    async def locks(self) -> list[LockRecord]:
        return await self._server.records(LockRecord, f"{self._path}/locks")

    async def steps(self) -> list[StepRecord]:
        return await self._server.records(StepRecord, f"{self._path}/steps")

    async def phases(self) -> list[PhaseRecord]:
        return await self._server.records(PhaseRecord, f"{self._path}/phases")

    async def attempts(self) -> list[AttemptRecord]:
        return await self._server.records(AttemptRecord, f"{self._path}/attempts")

    async def events(self) -> list[JobEvent]:
        return await self._server.records(JobEvent, f"{self._path}/events")

    async def logs(self, *, after: LogLine | None = None) -> list[LogLine]:
        query = {} if after is None else {"cursor": f"{after.token}-{after.line}"}
        page = await self._server.call("GET", f"{self._path}/logs", query=query)
        return [read_record(LogLine, row) for row in page["items"]]

    async def cancel(self, reason: str | None = None, *, force: bool = False) -> Status:
        return await self._act("cancel", reason=reason, force=force)

    async def retry(self) -> "RemoteJob":
        made = await self._server.call("POST", f"{self._path}/retry", body={})
        return RemoteJob(self._server, made["id"])

    async def approve(self, reason: str | None = None) -> Status:
        return await self._act("approve", reason=reason)

    async def reject(self, reason: str | None = None) -> Status:
        return await self._act("reject", reason=reason)

    async def reprioritise(self, priority: int) -> None:
        path = f"/v1/admin/workers/jobs/{self.id}/priority"
        await self._server.call("PATCH", path, body={"priority": priority})

    async def run_now(self, reason: str | None = None) -> None:
        await self._act("run-now", reason=reason)

    async def signal(self, name: str, payload: Any = None) -> Status:
        return await self._act(f"signals/{segment(name)}", payload=payload)

    async def move(self, lane: str, reason: str | None = None) -> None:
        await self._act("move", lane=lane, reason=reason)

    async def delete(self) -> None:
        # The route would cancel an unfinished job. A finished one stays finished, so this check cannot be overtaken.
        job = await self.get()
        if not job.status.is_final:
            raise WrongStatus(f"job {job.id} cannot be deleted: it is {job.status}, and must be finished")
        await self._server.call("DELETE", self._path)

    async def erase_args(self, reason: str | None = None) -> None:
        await self._act("erase", reason=reason)

    async def _act(self, verb: str, **body: Any) -> Status:
        return Status((await self._server.call("POST", f"{self._path}/{verb}", body=body))["status"])


class Part:
    def __init__(self, server: RemoteServer) -> None:
        self._server = server


class RemoteLanes(Part):
    async def list(self) -> list[Lane]:
        return await self._server.records(Lane, "/v1/admin/workers/lanes")

    async def set(self, name: str, **settings: Any) -> Lane:
        refuse("--default-priority", settings.get("default_priority"), "it is a setting of the database")
        try:
            return await self._send("PATCH", name, settings)
        except NotFound:
            return await self._send("POST", name, settings)

    async def drain(self, name: str) -> Lane:
        return await self._send("PATCH", name, {"enabled": False})

    async def resume(self, name: str) -> Lane:
        return await self._send("PATCH", name, {"enabled": True})

    async def _send(self, method: str, name: str, settings: Mapping[str, Any]) -> Lane:
        path = f"/v1/admin/workers/lanes/{segment(name)}"
        return read_record(Lane, await self._server.call(method, path, body=settings))


class RemoteSchedules(Part):
    async def list(self) -> list[Schedule]:
        return [_schedule(row) for row in await self._server.records(dict[str, Any], "/v1/schedules")]

    async def set(self, name: str, **settings: Any) -> Schedule:
        try:
            return await self._change(name, settings)
        except NotFound:
            return _schedule(await self._server.call("POST", "/v1/schedules", body={"name": name, **settings}))

    async def pause(self, name: str) -> Schedule:
        return await self._change(name, {"paused": True})

    async def resume(self, name: str) -> Schedule:
        return await self._change(name, {"paused": False})

    async def run(self, name: str) -> RemoteJob:
        made = await self._server.call("POST", f"/v1/schedules/{segment(name)}/run")
        return RemoteJob(self._server, made["id"])

    async def delete(self, name: str) -> None:
        await self._server.call("DELETE", f"/v1/schedules/{segment(name)}")

    async def _change(self, name: str, settings: Mapping[str, Any]) -> Schedule:
        return _schedule(await self._server.call("PATCH", f"/v1/schedules/{segment(name)}", body=settings))


def _schedule(row: Mapping[str, Any]) -> Schedule:
    """Fills in what the server does not show; next runs are counted from this machine's time."""
    now = datetime.now(UTC)
    return read_record(Schedule, {"revision": 0, "settled_at": now, "now": now, **row})


class RemoteStats(Part):
    async def backlog(self) -> Stats[Backlog]:
        return await self._read(Stats[Backlog], "backlog")

    async def active(self) -> Stats[ActiveJob]:
        return await self._read(Stats[ActiveJob], "active")

    async def errors(self, *, seconds: float) -> Stats[ErrorRate]:
        return await self._read(Stats[ErrorRate], "errors", seconds=seconds)

    async def throughput(self, *, seconds: float, bucket_seconds: float) -> Stats[Throughput]:
        return await self._read(Stats[Throughput], "throughput", seconds=seconds, bucket_seconds=bucket_seconds)

    async def slow(self, *, seconds: float) -> Stats[SlowJob]:
        return await self._read(Stats[SlowJob], "slow", seconds=seconds)

    async def _read(self, kind: type[T], name: str, **query: float) -> T:
        return read_record(kind, await self._server.call("GET", f"/v1/stats/{name}", query=query))


class RemoteSystem(Part):
    async def locks(self) -> list[LockRecord]:
        return await self._server.records(LockRecord, "/v1/locks")

    async def lane_rates(self) -> dict[str, float]:
        rates = await self._server.call("GET", "/v1/stats/rates")
        return {row["lane"]: row["per_second"] for row in rates["items"]}

    async def workers(self, *, stopped: bool = False) -> list[WorkerRecord]:
        if stopped:
            raise FencelineError("the server lists only workers that are running: use --dsn to see stopped ones")
        fleet = await self._server.call("GET", "/v1/admin/workers/status")
        found = [(row, False) for row in fleet["workers"]] + [(row, True) for row in fleet["runners"]]
        return [read_record(WorkerRecord, {**row, "runner": runner, "running": row["in_use"]}) for row, runner in found]

    async def depth(self, lane: str | None = None) -> int:
        query = {} if lane is None else {"lane": lane}
        return int((await self._server.call("GET", "/v1/admin/workers/depth", query=query))["depth"])

    async def drain(self, reason: str | None = None) -> None:
        await self._server.call("POST", "/v1/admin/drain", body={"reason": reason})

    async def resume(self) -> None:
        await self._server.call("POST", "/v1/admin/resume", body={})

    async def rekey(self) -> str:
        return str((await self._server.call("POST", "/v1/admin/rekey"))["id"])

    async def sweep(self) -> int:
        return int((await self._server.call("POST", "/v1/admin/sweep"))["swept"])

    async def prune(self, limit: int) -> int:
        return int((await self._server.call("POST", "/v1/admin/prune", body={"limit": limit}))["pruned"])

    async def tenant_limits(self) -> list[TenantLimit]:
        return await self._server.records(TenantLimit, "/v1/admin/limits")

    async def set_tenant_limit(self, max_jobs: int | None, *, tenant: str | None) -> None:
        await self._server.call("PUT", "/v1/admin/limits", body={"max_jobs": max_jobs, "tenant": tenant})

    async def approval_by_other(self) -> bool:
        return bool((await self._server.call("GET", "/v1/admin/approval"))["by_other"])

    async def set_approval(self, *, by_other: bool) -> None:
        await self._server.call("PUT", "/v1/admin/approval", body={"by_other": by_other})

    async def retention(self) -> list[Retention]:
        return await self._server.records(Retention, "/v1/admin/retention")

    async def set_retention(self, seconds: float | None, *, kind: str | None, status: str | None) -> None:
        body = {"seconds": seconds, "kind": kind, "status": status}
        await self._server.call("PUT", "/v1/admin/retention", body=body)
