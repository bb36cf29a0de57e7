"""Workers and runners: how they sign on, keep their leases, and leave; and which there are."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fenceline.database.call import As, Call, Function, Sql, function, jsonb, rows_of, statement, value_of
from fenceline.database.decoding import Row, json_value, nothing, records, tuples
from fenceline.model.identity import Identity
from fenceline.model.json_text import stored_json
from fenceline.model.records import WorkerRecord


def declare_kinds(kinds: Mapping[str, Mapping[str, Any]]) -> Call[None]:
    return value_of(function("declare_kinds", kinds=jsonb(kinds)), nothing, repeatable=True)


def register_worker(
    name: str,
    *,
    lease_seconds: float,
    kinds: list[str],
    lanes: list[str] | None,
    host: str,
    pid: int,
    version: str,
    tells_starts: bool = False,
    labels: Mapping[str, str] | None = None,
    signatures: Mapping[str, Mapping[str, Any]] | None = None,
) -> Call[int]:
    """`tells_starts`: it reports last attempts before their handlers run. `signatures`: the args that handlers take."""
    called = _registration(**locals() | {"labels": labels or None})
    return value_of(called, repeatable=True)  # a worker registered twice is one that never claims


def register_runner(
    viewer: Identity,
    name: str,
    *,
    lease_seconds: float | None,
    silent_seconds: float,
    lanes: Sequence[str] | None,
    kinds: Sequence[str] | None,
    labels: Mapping[str, str] | None,
    host: str | None,
    version: str | None,
    tells_starts: bool = False,
    signatures: Mapping[str, Mapping[str, Any]] | None = None,
) -> Call[Row]:
    """Its id and its lease: what it asks for, else what its lanes say, else `silent_seconds`."""
    called = _registration(
        name=name,
        lease_seconds=Sql("s.lease"),
        kinds=kinds,
        lanes=lanes,
        host=host,
        version=version,
        runner=True,
        labels=labels,
        tenant=viewer.reach,
        owner=viewer.owner,
        tells_starts=tells_starts,
        signatures=signatures,
    )
    return statement(
        "select {}, s.lease from (select coalesce({}, {}) as lease) s",
        called,
        As("double precision", lease_seconds),
        function("offline_seconds", lanes=lanes, default=silent_seconds),
        decode=lambda rows: rows[0],
        repeatable=True,  # a runner registered twice is one that never claims
    )


def _registration(
    *,
    labels: Mapping[str, str] | None,
    tells_starts: bool,
    signatures: Mapping[str, Mapping[str, Any]] | None,
    **settings: Any,
) -> Function:
    registered = function("register_worker", settings, labels=jsonb(labels))
    if signatures:
        registered = function("declare_signatures", worker_id=registered, signatures=jsonb(signatures))
    return function("promise_starts", worker_id=registered) if tells_starts else registered


@dataclass(frozen=True, slots=True)
class LeaseNotice:
    """The answer to a heartbeat: `lost` or `busy` about a worker, `cancel` or `stale` about an attempt."""

    worker_id: int
    attempt_id: UUID | None
    notice: str


def heartbeat(worker_ids: list[int]) -> Call[list[LeaseNotice]]:
    return _notices(function("heartbeat", locals()))


def keep_leases(worker_ids: list[int], blocked: Mapping[int, Mapping[str, Any]]) -> Call[list[LeaseNotice]]:
    """`blocked`: by worker, for how many `seconds` its event loop has been blocked, and by whose handler (`job_id`)."""
    return _notices(function("keep_leases", locals(), blocked=jsonb(blocked or None)))


def _notices(called: Function) -> Call[list[LeaseNotice]]:
    return rows_of(called, "worker_id, attempt_id, word", tuples(LeaseNotice), repeatable=True)


def runner_heartbeat(runner_id: int, viewer: Identity, held: Sequence[UUID] | None) -> Call[str]:
    """The answer as JSON text. Raises UnknownRunner, WorkerLost."""
    return value_of(function("runner_heartbeat", locals(), owner=viewer.owner), repeatable=True)


def await_jobs(runner_id: int, viewer: Identity, lanes: Sequence[str] | None, wait_seconds: float) -> Call[list[str]]:
    return value_of(function("await_jobs", locals(), owner=viewer.owner), repeatable=True)


def stop_worker(worker_id: int, fail_kinds: Sequence[str], owner: Identity | None = None) -> Call[int]:
    """`owner`: of a runner that is stopped over HTTP."""
    called = function("stop_worker", worker_id=_owned(worker_id, owner), fail_kinds=fail_kinds or None)
    return value_of(called, repeatable=owner is None)


def report_crash(
    runner_id: int, owner: Identity, suspects: Sequence[UUID] | None, error: Mapping[str, Any]
) -> Call[int]:
    called = function(
        "report_crash",
        worker_id=_owned(runner_id, owner),
        suspects=suspects,
        error=As("jsonb", stored_json(dict(error))),
    )
    return value_of(called)


def own_runner(runner_id: int, owner: Identity) -> Call[int]:
    """Its id. Raises UnknownRunner if it is somebody else's, WorkerLost."""
    return value_of(_own_runner(runner_id, owner), repeatable=True)


def _owned(worker_id: int, owner: Identity | None) -> int | Function:
    """Its id as an argument of a call, which raises as `own_runner` does."""
    return worker_id if owner is None else _own_runner(worker_id, owner)


def _own_runner(runner_id: int, owner: Identity) -> Function:
    return function("own_runner", runner_id=runner_id, owner=owner.owner)


def report_death(worker_id: int, report: Mapping[str, Any], owner: Identity | None = None) -> Call[dict[str, Any]]:
    """`report`: lists of attempt ids (`suspects`, `timed_out`, `set_apart`) and the `error`. `owner`: of a runner."""
    called = function(
        "report_death", worker_id=_owned(worker_id, owner), report=As("jsonb", json.dumps(report, default=str))
    )
    return value_of(called, json_value, repeatable=True)


def list_workers(*, stopped: bool) -> Call[list[WorkerRecord]]:
    return statement(
        "select to_jsonb(w) || jsonb_build_object('blocked_seconds', b.seconds, 'blocked_by', b.job) "
        "from {} w left join {} b on b.worker_id = w.id order by w.stopped_at is not null, w.id",
        function("list_workers", stopped=stopped),
        function("blocked_workers"),
        decode=records(WorkerRecord),
        repeatable=True,
    )


#: A channel by which listeners notice that they still hear.
CANARY = "fenceline_canary"


def send_canary(payload: str) -> Call[None]:
    return Call("select pg_notify($1, $2)", (CANARY, payload), nothing, repeatable=True)
