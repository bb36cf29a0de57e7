"""Attempts: how workers and runners claim, start and finish them, and report on them in between.

Runners speak through the server, on behalf of their owner: the `viewer`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from fenceline.database.call import As, Call, Function, function, rows_of, statement, tuples_of, value_of
from fenceline.database.decoding import Row, column, nothing, scalar
from fenceline.model.identity import Identity
from fenceline.model.json_text import stored_json
from fenceline.model.outcome import Outcome
from fenceline.model.sealed import Seal, each, seal_error, seal_items, seal_json, seal_lines

# Claims.

#: How many bytes of args come with a claim; the rest is fetched after it has been committed.
CLAIM_BYTES = 65_536
_WHOLE_CLAIM = """
    select job_id, attempt_id, token, number, kind, args, tenant, priority, seq, max_attempts, timeout_seconds, alone,
           more
    from """
# The reply must fit into the buffers of a socket: a claim keeps its locks until the last byte of its reply is sent, and
# a frozen worker does not read it.
_BOUNDED_CLAIM = f"""
    select job_id, attempt_id, token, number, kind, case when bytes <= {CLAIM_BYTES} then args end, tenant, priority,
           seq, max_attempts, timeout_seconds, alone, case when bytes <= {CLAIM_BYTES} then more end
    from (
      select c.*, sum(case when pg_column_compression(c.args) is null then pg_column_size(c.args)
                           else octet_length(c.args::text) end + coalesce(pg_column_size(c.more), 0))
                    over (rows unbounded preceding) as bytes
      from """  # noqa: S608 - a number of ours
_END_OF_BOUNDED = " c) c"
#: The place of `args` in a row of the answer; if it is null, ask for the whole claim.
ARGS_COLUMN = 5


def claim_jobs(
    worker_id: int,
    lane: str,
    limit: int,
    *,
    request_id: UUID,
    wait_seconds: float | None,
    alone: bool,
    floors: Mapping[int, int],
    kinds: list[str] | None = None,
) -> Call[list[Row]]:
    """`kinds` None: those that the worker registered with. Rows of a large claim lack args: see `whole_claim`."""
    priorities = sorted(floors, reverse=True)
    called = function(
        "claim_jobs",
        worker_id=worker_id,
        lane=lane,
        limit=limit,
        kinds=kinds,
        request_id=request_id,
        wait_seconds=wait_seconds,
        alone=alone,
        floor_priorities=priorities or None,
        floor_seqs=[floors[priority] for priority in priorities] or None,
    )
    return _claim(called)


def claim_named_jobs(
    worker_id: int, lane: str, job_ids: Sequence[int], *, request_id: UUID, kinds: list[str] | None = None
) -> Call[list[Row]]:
    """As `claim_jobs`, for the jobs that messages have named."""
    return _claim(function("claim_named_jobs", locals()))


def _claim(called: Function) -> Call[list[Row]]:
    template = _BOUNDED_CLAIM + "{}" + _END_OF_BOUNDED
    return statement(template, called, decode=list, repeatable=True)  # by its request id


def whole_claim(claim: Call[list[Row]]) -> Call[list[Row]]:
    """The attempts of a claim that has been committed, with all their args. Takes no locks, so it may be large."""
    called = claim.sql.removeprefix(_BOUNDED_CLAIM).removesuffix(_END_OF_BOUNDED)
    return replace(claim, sql=_WHOLE_CLAIM + called)


def claim_for_runner(
    runner_id: int,
    viewer: Identity,
    lane: str,
    limit: int,
    *,
    kinds: Sequence[str] | None,
    request_id: UUID,
    alone: bool,
) -> Call[list[str | None]]:
    """One JSON text per attempt. The last ones of a large claim are null: see `whole_runner_claim`."""
    return _runner_claim(function("claim_for_runner", locals(), owner=viewer.owner))


def claim_apart(
    runner_id: int, viewer: Identity, lane: str, limit: int, *, kinds: Sequence[str] | None, request_id: UUID
) -> Call[list[str | None]]:
    """As `claim_for_runner`, for suspects: the runner has a process for each of them."""
    return _runner_claim(function("claim_apart", locals(), owner=viewer.owner))


# As `_BOUNDED_CLAIM`; a job as the server describes it has a few hundred bytes besides its args.
RUNNER_CLAIM_BYTES = 1_000_000


def _runner_claim(called: Function) -> Call[list[str | None]]:
    bytes_so_far = "sum(octet_length(r::text)) over (rows unbounded preceding)"
    columns = f"case when {bytes_so_far} <= {RUNNER_CLAIM_BYTES} then r end"
    return rows_of(called, columns, column, repeatable=True)  # by its request id


def whole_runner_claim(claim: Call[list[str | None]]) -> Call[list[str]]:
    """As `whole_claim`."""
    function_of_claim = claim.sql.partition(" then r end from ")[2]
    return Call(f"select r from {function_of_claim}", claim.parameters, column, repeatable=True)  # noqa: S608 - of ours


def live_claim(job_id: int, attempt_id: UUID) -> Call[Row | None]:
    """The columns of an `Attempt`; None if it is gone."""
    return rows_of(
        function("live_claim", locals()),
        "lane, job_id, attempt_id, token, number, kind, args, tenant, priority, seq, max_attempts, timeout_seconds, "
        "alone, more",
        lambda rows: rows[0] if rows else None,
        repeatable=True,
    )


# Between claim and finish.


def start_attempts(job_ids: list[int], attempt_ids: list[UUID], ran_seconds: list[float]) -> Call[list[Row]]:
    return rows_of(function("start_attempts", locals()), "job_id, attempt_id", list, repeatable=True)


def check_attempts(job_ids: list[int], attempt_ids: list[UUID]) -> Call[list[Row]]:
    """Rows of attempt_id, word (`stale` or `cancel`) and the seconds of grace left; no rows if all is well."""
    return rows_of(function("check_attempts", locals()), "attempt_id, word, grace_seconds", list, repeatable=True)


def attempts_in_use(job_ids: list[int], attempt_ids: list[UUID]) -> Call[set[UUID]]:
    """Which of these attempts somebody else is changing right now."""
    return rows_of(function("attempts_in_use", locals()), "attempt_id", lambda rows: set(column(rows)), repeatable=True)


def runner_attempt(job_id: int, attempt_id: UUID, viewer: Identity) -> Call[str]:
    """`live` or `ended`. Raises NotFound, StaleAttempt, ForeignAttempt."""
    return value_of(function("runner_attempt", locals(), owner=viewer.owner, tenant=viewer.reach), repeatable=True)


def report_attempts(
    job_ids: list[int],
    attempt_ids: list[UUID],
    lines: Sequence[Sequence[Mapping[str, Any]] | None],
    progress: Sequence[Mapping[str, Any] | None],
) -> Call[list[UUID]]:
    """Write log lines and progress of many attempts; the stale ones. Not repeatable: lines would be there twice."""
    called = function("report_attempts", locals(), lines=_texts(lines, each(seal_lines)), progress=_texts(progress))
    return rows_of(called, "attempt_id", column)


def _texts(values: Sequence[Any], seal: Seal | None = None) -> As:
    return As("jsonb[]", [None if value is None else stored_json(value) for value in values], seal)


def start_as_runner(
    viewer: Identity, job_ids: list[int], attempt_ids: list[UUID], ran_seconds: list[float]
) -> Call[list[str]]:
    """A verdict for each: accepted, stale, forbidden or not_found."""
    return _verdicts(function("start_as_runner", locals(), owner=viewer.owner, tenant=viewer.reach), len(job_ids))


def report_as_runner(
    viewer: Identity,
    job_ids: list[int],
    attempt_ids: list[UUID],
    *,
    lines: Sequence[Sequence[Mapping[str, Any]] | None],
    progress: Sequence[Mapping[str, Any] | None],
    offsets: list[int | None],
) -> Call[list[str]]:
    """As `report_attempts`, but repeatable because of the offsets; a verdict for each as in `start_as_runner`."""
    called = function(
        "report_as_runner",
        locals(),
        owner=viewer.owner,
        tenant=viewer.reach,
        lines=_texts(lines, each(seal_lines)),
        progress=_texts(progress),
    )
    return _verdicts(called, len(job_ids))


def _verdicts(called: Function, count: int) -> Call[list[str]]:
    """A verdict for each place; the answer has only those that are not `accepted`."""

    def decode(rows: Sequence[Row]) -> list[str]:
        verdicts = ["accepted"] * count
        for place, verdict in rows:
            verdicts[place - 1] = verdict
        return verdicts

    return rows_of(called, "place, verdict", decode, repeatable=True)


def write_log(job_id: int, attempt_id: UUID, lines: Sequence[Mapping[str, Any]], offset: int | None) -> Call[bool]:
    """False if the attempt is stale. With an offset it is safe to repeat."""
    called = function("write_log", locals(), lines=As("jsonb", stored_json(lines), seal_lines))
    return value_of(called, repeatable=offset is not None)


# Ends.

#: How long a user's transaction may be idle between the end of its job and the commit.
COMMIT_SECONDS = 5
_COMMIT_SOON = f"set_config('idle_in_transaction_session_timeout', '{COMMIT_SECONDS}s', true)"


def finish_attempts(columns: Sequence[list[Any] | None]) -> Call[list[Row]]:
    """job_ids, attempt_ids, outcomes, results, errors, error_lists, delays, ran_seconds."""
    called = _finish_attempts(columns)
    return rows_of(called, "attempt_id, verdict", list, repeatable=True)  # an exact repeat answers `already`


def finish_together(columns: Sequence[list[Any] | None]) -> Call[list[str]]:
    """As `finish_attempts`, in a transaction of the caller's (see `finish_attempt`): the attempts that were refused."""
    return statement(
        f"select array(select cast(r.attempt_id as text) from {{}} r), {_COMMIT_SOON}",  # noqa: S608 - a number of ours
        _finish_attempts(columns),
        decode=scalar,
    )


def _finish_attempts(columns: Sequence[list[Any] | None]) -> Function:
    job_ids, attempt_ids, outcomes, results, errors, error_lists, delays, ran_seconds = columns
    return function(
        "finish_attempts",
        job_ids=As("bigint[]", job_ids),
        attempt_ids=attempt_ids,
        outcomes=outcomes,
        results=As("jsonb[]", results, each(seal_json)),
        errors=As("jsonb[]", errors, each(seal_error)),
        error_lists=As("jsonb[]", error_lists, each(seal_items)),
        delays=delays,
        ran_seconds=ran_seconds,
    )


def note_refused_writes(job_ids: list[int], attempt_ids: list[UUID], write: str) -> Call[None]:
    """For the jobs' timelines. `write` is the name of the operation that came too late."""
    return value_of(function("note_refused_writes", locals()), nothing)


def finish_attempt(
    job_id: int,
    attempt_id: UUID,
    outcome: Outcome,
    *,
    result: str | None = None,
    error: str | None = None,
    errors: str | None = None,
    in_transaction: bool = False,
) -> Call[str]:
    """accepted, already or stale. `result`, `error` and `errors` are JSON text.

    `in_transaction`: in one of the caller's, which must be committed now. From here on it holds locks that others need,
    so the server ends it when its client falls silent.
    """
    called = function(
        "finish_attempt",
        job_id=job_id,
        attempt_id=attempt_id,
        outcome=outcome,
        result=As("jsonb", result, seal_json),
        error=As("jsonb", error, seal_error),
        errors=As("jsonb", errors, seal_items),
    )
    if not in_transaction:
        return value_of(called, repeatable=True)
    return statement(f"select {{}}, {_COMMIT_SOON}", called, decode=scalar)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerEnding:
    """How an attempt of a runner ended; result, error, errors and metadata are JSON text."""

    job_id: int
    attempt_id: UUID
    outcome: Outcome
    result: str | None = None
    error: str | None = None
    errors: str | None = None
    delay_seconds: float | None = None
    ran_seconds: float | None = None
    metadata: str | None = None


def finish_as_runner(viewer: Identity, endings: Sequence[RunnerEnding], *, finalized: bool = False) -> Call[list[str]]:
    """A verdict for each: accepted, already, stale, forbidden, not_found or finalizer."""

    def values(name: str) -> list[Any] | None:
        found = [getattr(ending, name) for ending in endings]
        return found if any(value is not None for value in found) else None

    called = function(
        "finish_as_runner",
        owner=viewer.owner,
        tenant=viewer.reach,
        job_ids=[ending.job_id for ending in endings],
        attempt_ids=[ending.attempt_id for ending in endings],
        outcomes=[ending.outcome for ending in endings],
        results=As("jsonb[]", values("result"), each(seal_json)),
        errors=As("jsonb[]", values("error"), each(seal_error)),
        error_lists=As("jsonb[]", values("errors"), each(seal_items)),
        delays=values("delay_seconds"),
        ran_seconds=values("ran_seconds"),
        metadata=As("jsonb[]", values("metadata")),
        finalized=finalized,
    )
    return _verdicts(called, len(endings))  # an exact repeat answers `already`


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """What the state machine has made of an attempt's end."""

    attempt_id: UUID
    is_final: bool  # it was the job's end
    asked: str  # what it ended as: failed, quarantined …
    next_seconds: float | None  # until the job runs again


def attempt_ends(job_ids: list[int], attempt_ids: list[UUID]) -> Call[list[AttemptEnd]]:
    return tuples_of(AttemptEnd, function("attempt_ends", locals()))


def crash_attempt(job_id: int, attempt_id: UUID, error: str | None) -> Call[str]:
    """`error` is JSON text. Answers accepted, already or stale."""
    return value_of(function("crash_attempt", locals(), error=As("jsonb", error, seal_error)), repeatable=True)
