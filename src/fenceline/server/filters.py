"""The filters of a list: in a query string, where every one may be repeated, and in the body of a bulk verb."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Query
from pydantic import Field, StrictStr

from fenceline.model.job import JobFilter
from fenceline.model.public_id import InvalidId, format_id, parse_id
from fenceline.server.problems import Problem
from fenceline.server.schemas import Body, Moment

Texts = Annotated[list[str] | None, Query()]
Text = Annotated[str | None, Query(max_length=512)]
Limit = Annotated[int, Query(ge=1, le=1000, description="The most items to return.")]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the previous page.")]
Fields = Annotated[list[str] | None, Query(description="What else to show: `args`, `result`, separated by commas.")]
#: What lists leave out unless asked.
OPTIONAL_FIELDS = ("args", "result")
When = Annotated[Moment | None, Query()]


class FilterBody(Body):
    """As the query of `GET /v1/jobs`; each value alone or in a list."""

    status: StrictStr | list[StrictStr] | None = None
    kind: StrictStr | list[StrictStr] | None = None
    lane: StrictStr | list[StrictStr] | None = None
    tenant: StrictStr | list[StrictStr] | None = None
    label: StrictStr | list[StrictStr] | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None
    created_by: Annotated[StrictStr, Field(min_length=1, max_length=512)] | None = None
    error: Annotated[StrictStr, Field(min_length=1, max_length=512)] | None = None
    parent: Annotated[StrictStr, Field(min_length=1, max_length=512)] | None = None
    group: Annotated[StrictStr, Field(min_length=1, max_length=512)] | None = None
    key: Annotated[StrictStr, Field(min_length=1, max_length=512)] | None = None
    worker: Annotated[StrictStr, Field(min_length=1, max_length=512)] | None = None
    phase: Annotated[StrictStr, Field(min_length=1, max_length=512)] | None = None

    def to_filter(self) -> JobFilter:
        """Raises Problem `invalid` for a label without a colon."""
        return JobFilter(
            statuses=_several(self.status),
            kinds=_several(self.kind),
            lanes=_several(self.lane),
            tenants=_several(self.tenant),
            labels=read_labels(_several(self.label)),
            created_after=self.created_after,
            created_before=self.created_before,
            created_by=self.created_by,
            error=self.error,
            parent=_read_parent(self.parent),
            group=self.group,
            key=self.key,
            worker=self.worker,
            phase=self.phase,
        )


async def _job_filter(  # noqa: PLR0917 - FastAPI passes them by name; async: else it goes through a thread
    status: Texts = None,
    kind: Texts = None,
    lane: Texts = None,
    tenant: Texts = None,
    label: Texts = None,
    created_after: When = None,
    created_before: When = None,
    created_by: Annotated[Text, Query(description="Who enqueued it.")] = None,
    error: Annotated[Text, Query(description="Text in its error, in upper or lower case.")] = None,
) -> JobFilter:
    return JobFilter(
        statuses=status,
        kinds=kind,
        lanes=lane,
        tenants=tenant,
        labels=read_labels(label),
        created_after=created_after,
        created_before=created_before,
        created_by=created_by,
        error=error,
    )


#: What `GET /v1/jobs` and `GET /v1/stream` take in the query string.
JobQuery = Annotated[JobFilter, Depends(_job_filter)]


async def _list_filter(  # noqa: PLR0917 - as above
    filters: JobQuery,
    parent: Annotated[Text, Query(description="The job whose handler enqueued it.")] = None,
    group: Text = None,
    key: Text = None,
    worker: Annotated[Text, Query(description="The worker or runner that holds it or finished it.")] = None,
    phase: Annotated[Text, Query(description="Its last phase.")] = None,
) -> JobFilter:
    return replace(
        filters,
        parent=_read_parent(parent),
        group=group,
        key=key,
        worker=worker,
        phase=phase,
    )


#: What `GET /v1/jobs` takes.
ListQuery = Annotated[JobFilter, Depends(_list_filter)]


def read_labels(label: Sequence[str] | None) -> dict[str, str] | None:
    """`project:x` to name and value; the value may have colons of its own. Raises Problem `invalid`."""
    labels: dict[str, str] = {}
    for text in label or ():
        name, colon, value = text.partition(":")
        if not colon or not name or labels.get(name, value) != value:
            message = "write it as name:value, each name once"
            raise Problem("invalid", f"label {text[:80]!r}: {message}", errors=[{"field": "label", "message": message}])
        labels[name] = value
    return labels or None


def read_cursor(cursor: str | None) -> int | None:
    """Raises Problem `invalid`: a cursor is an answer's own word, no id that somebody typed."""
    if cursor is None:
        return None
    try:
        return parse_id(cursor)
    except InvalidId as error:
        raise _wrong_cursor() from error


def read_skipped(cursor: str | None) -> int:
    """The same for lists whose cursor is how many rows came before. Raises Problem `invalid`."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):  # noqa: PLR2004 - digits of an integer
        raise _wrong_cursor()
    return int(cursor)


def _wrong_cursor() -> Problem:
    message = "use the next_cursor of the page before"
    return Problem("invalid", f"cursor: {message}", errors=[{"field": "cursor", "message": message}])


def read_fields(fields: Sequence[str] | None, known: Sequence[str] = OPTIONAL_FIELDS) -> list[str]:
    """`args,result`, or each by itself. Raises Problem `invalid` for one that is not known."""
    wanted = [name.strip() for text in fields or () for name in text.split(",")]
    for name in wanted:
        if name not in known:
            message = f"{name[:80]!r} cannot be asked for: use {', '.join(known)}"
            raise Problem("invalid", f"fields: {message}", errors=[{"field": "fields", "message": message}])
    return wanted


def _read_parent(parent: str | None) -> str | None:
    """A malformed id is answered like that of a missing job: it has no children."""
    try:
        return None if parent is None else format_id(parse_id(parent))
    except InvalidId:
        return format_id(0)


def _several(value: str | list[str] | None) -> list[str] | None:
    return [value] if isinstance(value, str) else value
