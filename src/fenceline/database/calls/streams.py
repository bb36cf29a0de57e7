"""Watching jobs live: the jobs that somebody follows, and the journal of everything that happens."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic_core import from_json

from fenceline.database.call import Call, function, rows_of, tuples_of, value_of
from fenceline.database.decoding import Row

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


def _line_text(text: str) -> LineText:
    line = from_json(text)
    return LineText(line["token"], line["line"], text)


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
    return value_of(function("follow_jobs", locals()), repeatable=True)


def is_settled(transaction: str) -> Call[bool]:
    return value_of(function("is_settled", locals()), repeatable=True)


def followed_stamps(job_ids: list[int]) -> Call[dict[int, int]]:
    return rows_of(function("followed_stamps", locals()), "job_id, stamp", dict, repeatable=True)


def followed_jobs(after: dict[int, tuple[int, int]], limit: int) -> Call[list[FollowedJob]]:
    """`after`: per job, the token and line of the last log line that the caller has."""
    called = function(
        "followed_jobs",
        job_ids=list(after),
        tokens=[token for token, _line in after.values()],
        lines=[line for _token, line in after.values()],
        limit=limit,
    )
    return rows_of(called, _FOLLOWED, _decode_followed, repeatable=True)


def followed_states(job_ids: list[int], max_bytes: int) -> Call[list[FollowedJob]]:
    """Without log lines; values longer than `max_bytes` are cut."""
    return rows_of(function("followed_states", locals()), _FOLLOWED, _decode_followed, repeatable=True)


_FOLLOWED = "job_id, stamp, job, status, progress, status_version, progress_version, lines"


def _decode_followed(rows: Sequence[Row]) -> list[FollowedJob]:
    return [FollowedJob(*(*shown, [_line_text(text) for text in lines])) for *shown, lines in rows]


def journal_place(after: int | None) -> Call[int | None]:
    """Where to read on; None if something after that is gone."""
    return value_of(function("journal_place", locals()), repeatable=True)


def read_journal(after: int, limit: int) -> Call[list[JournalRow]]:
    return tuples_of(JournalRow, function("read_journal", locals()))


def journal_lines(rows_of_lines: Sequence[JournalRow]) -> Call[dict[int, list[LineText]]]:
    """Log lines by the place of their row."""

    def decode(rows: Sequence[Row]) -> dict[int, list[LineText]]:
        lines: dict[int, list[LineText]] = {}
        for n, text in rows:
            lines.setdefault(rows_of_lines[n - 1].place, []).append(_line_text(text))
        return lines

    called = function(
        "journal_lines",
        job_ids=[row.job_id for row in rows_of_lines],
        tokens=[row.token for row in rows_of_lines],
        first=[row.first_line for row in rows_of_lines],
        last=[row.last_line for row in rows_of_lines],
    )
    return rows_of(called, "n, line", decode, repeatable=True)
