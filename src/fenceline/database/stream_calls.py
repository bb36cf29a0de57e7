"""Watching jobs live, as `Call`s."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic_core import from_json

from fenceline.database.calls import Call, Row
from fenceline.model.identity import Identity

#: The notification that something about followed jobs has changed: ids joined by commas.
CHANGED = "fenceline_changed"
#: Instead of a job's id: every job, through the journal.
EVERYTHING = 0


@dataclass(frozen=True, slots=True)
class LineText:
    """A log line as JSON text, with its place."""

    token: int
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class FollowedJob:
    """A job as a live view shows it: `job` and `progress` are JSON text, None when the job is gone."""

    job_id: int
    stamp: int
    job: str | None
    status: str | None
    progress: str | None
    status_version: int
    progress_version: int
    lines: Sequence[LineText]


@dataclass(frozen=True, slots=True)
class JournalRow:
    """Something that happened: log lines of an attempt, or else a change of the job's state."""

    place: int
    job_id: int
    at: datetime
    token: int | None
    first_line: int | None
    last_line: int | None


def follow_jobs(job_ids: list[int], seconds: float) -> Call[str]:
    """The number of the transaction that did it, for `is_settled`."""
    return Call(
        "select fenceline.follow_jobs($1, $2)", (job_ids, seconds), lambda rows: str(rows[0][0]), repeatable=True
    )


def is_settled(transaction: str) -> Call[bool]:
    return Call("select fenceline.is_settled($1)", (transaction,), lambda rows: bool(rows[0][0]), repeatable=True)


def followed_stamps(job_ids: list[int]) -> Call[dict[int, int]]:
    return Call("select job_id, stamp from fenceline.followed_stamps($1)", (job_ids,), _pairs, repeatable=True)


def _pairs(rows: Sequence[Row]) -> dict[int, int]:
    return {row[0]: row[1] for row in rows}


def followed_jobs(after: dict[int, tuple[int, int]], limit: int) -> Call[list[FollowedJob]]:
    """`after`: per job the token and line of the last log line that is known."""
    return Call(
        "select job_id, stamp, job, status, progress, status_version, progress_version, lines "
        "from fenceline.followed_jobs($1, $2, $3, $4)",
        (list(after), [token for token, _line in after.values()], [line for _token, line in after.values()], limit),
        lambda rows: [_followed(*row) for row in rows],
        repeatable=True,
    )


def _followed(*values: Any) -> FollowedJob:
    job_id, stamp, job, status, progress, status_version, progress_version, lines = values
    return FollowedJob(
        job_id, stamp, job, status, progress, status_version, progress_version, [_line_text(text) for text in lines]
    )


def _line_text(text: str) -> LineText:
    line = from_json(text)
    return LineText(line["token"], line["line"], text)


def visible_job_id(job_id: int, identity: Identity) -> Call[int]:
    """The id itself. Raises NotFound for what is missing, foreign or past its retention."""
    return Call(
        "select fenceline.visible_job_id($1, $2, $3)",
        (job_id, identity.reach, identity.only_created_by),
        lambda rows: int(rows[0][0]),
        repeatable=True,
    )


def journal_place(after: int | None) -> Call[int | None]:
    """Where to read on; None when something after that is gone."""
    return Call("select fenceline.journal_place($1)", (after,), lambda rows: rows[0][0], repeatable=True)


def read_journal(after: int, limit: int) -> Call[list[JournalRow]]:
    return Call(
        "select place, job_id, at, token, first_line, last_line from fenceline.read_journal($1, $2)",
        (after, limit),
        lambda rows: [JournalRow(*row) for row in rows],
        repeatable=True,
    )


def journal_lines(rows_of_lines: Sequence[JournalRow]) -> Call[dict[int, list[LineText]]]:
    """Log lines by the place of their row."""

    def decode(rows: Sequence[Row]) -> dict[int, list[LineText]]:
        lines: dict[int, list[LineText]] = {}
        for n, text in rows:
            lines.setdefault(rows_of_lines[n - 1].place, []).append(_line_text(text))
        return lines

    return Call(
        "select n, line from fenceline.journal_lines($1, $2, $3, $4)",
        (
            [row.job_id for row in rows_of_lines],
            [row.token for row in rows_of_lines],
            [row.first_line for row in rows_of_lines],
            [row.last_line for row in rows_of_lines],
        ),
        decode,
        repeatable=True,
    )


def valid_tokens(hashes: list[bytes]) -> "Call[dict[bytes, Identity]]":
    """Who each of these tokens speaks for now; one that is not valid is left out."""

    def decode(rows: Sequence[Row]) -> dict[bytes, Identity]:
        return {
            row[0]: Identity(
                token_id=row[1], actor=row[2], role=row[3], tenant=row[4], permissions=frozenset(row[5]),
                own_jobs=row[6], all_tenants=row[7],
            )
            for row in rows
        }  # fmt: skip

    return Call(
        "select h, t.id, t.actor, t.role, t.tenant, t.permissions, t.own_jobs, t.all_tenants "
        "from unnest(cast($1 as bytea[])) h cross join lateral fenceline.use_token(h) t",
        (hashes,),
        decode,
        repeatable=True,
    )
