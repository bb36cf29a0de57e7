"""Filters of job lists, in a query string and in the body of a bulk action; cursors and pages of lists."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, Query, Response
from pydantic import Field, StrictStr

from fenceline.client.job_filters import read_filters
from fenceline.database.call import Call, page_of
from fenceline.model.job import JobFilter
from fenceline.model.public_id import InvalidId, format_id, parse_id
from fenceline.server.problems import Problem, invalid
from fenceline.server.routing import ApiRequest, list_response
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
    """Like the query of `GET /v1/jobs`; each condition is one value or a list."""

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
        label = [self.label] if isinstance(self.label, str) else self.label
        conditions = self.model_dump(exclude={"label"})
        conditions |= {"labels": read_labels(label), "parent": _read_parent(self.parent)}
        return read_filters(conditions)  # type: ignore[arg-type]  # the names are those of the filters


async def _job_filter(  # noqa: PLR0917 - FastAPI passes them by name; async, or it would run in a thread
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
    return replace(filters, parent=_read_parent(parent), group=group, key=key, worker=worker, phase=phase)


#: What `GET /v1/jobs` takes.
ListQuery = Annotated[JobFilter, Depends(_list_filter)]


def read_labels(label: Sequence[str] | None) -> dict[str, str] | None:
    """Reads `name:value`; the value may contain colons. Raises Problem `invalid`."""
    labels: dict[str, str] = {}
    for text in label or ():
        name, colon, value = text.partition(":")
        if not colon or not name or labels.get(name, value) != value:
            message = "write it as name:value, each name once"
            raise invalid("label", message, f"label {text[:80]!r}: {message}")
        labels[name] = value
    return labels or None


def read_cursor(cursor: str | None) -> int | None:
    """Raises Problem `invalid`, not `not_found`: a cursor is copied from an answer, not an id that somebody typed."""
    if cursor is None:
        return None
    try:
        return parse_id(cursor)
    except InvalidId as error:
        raise wrong_cursor() from error


async def answer_page(request: ApiRequest, call: Call[list[Any]], cursor: str | None) -> Response:
    """A page of a list whose cursor is the number of rows before it. Raises Problem `invalid`."""
    skipped = "0" if cursor is None else cursor
    if not (skipped.isascii() and skipped.isdigit() and len(skipped) < 10):  # noqa: PLR2004 - digits of an integer
        raise wrong_cursor()
    found, following = await request.call(page_of(call, int(skipped)))
    return list_response(found, following)


def wrong_cursor() -> Problem:
    return invalid("cursor", "use the next_cursor of the page before")


def read_fields(fields: Sequence[str] | None) -> list[str]:
    """Names separated by commas, or repeated. Raises Problem `invalid` for an unknown one."""
    wanted = [name.strip() for text in fields or () for name in text.split(",")]
    for name in wanted:
        if name not in OPTIONAL_FIELDS:
            raise invalid("fields", f"{name[:80]!r} cannot be asked for: use {', '.join(OPTIONAL_FIELDS)}")
    return wanted


def _read_parent(parent: str | None) -> str | None:
    """A malformed id counts as that of a missing job, which has no children."""
    try:
        return None if parent is None else format_id(parse_id(parent))
    except InvalidId:
        return format_id(0)
