"""The filters of a list: in a query string, where every one may be repeated, and in the body of a bulk verb."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query
from pydantic import StrictStr

from fenceline.database.server_calls import Filter
from fenceline.model.public_id import InvalidId, parse_id
from fenceline.server.problems import Problem
from fenceline.server.schemas import Body, Moment

Texts = Annotated[list[str] | None, Query()]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many items.")]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before.")]
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

    def to_filter(self) -> Filter:
        return make_filter(
            status=_several(self.status),
            kind=_several(self.kind),
            lane=_several(self.lane),
            tenant=_several(self.tenant),
            label=_several(self.label),
            created_after=self.created_after,
            created_before=self.created_before,
        )


def make_filter(
    *,
    status: list[str] | None,
    kind: list[str] | None,
    lane: list[str] | None,
    tenant: list[str] | None,
    label: Sequence[str] | None,
    created_after: datetime | None,
    created_before: datetime | None,
) -> Filter:
    """Raises Problem `invalid` for a label without a colon."""
    return Filter(
        statuses=status,
        kinds=kind,
        lanes=lane,
        tenants=tenant,
        labels=_read_labels(label),
        created_after=created_after,
        created_before=created_before,
    )


async def _job_filter(  # noqa: PLR0917 - FastAPI passes them by name; async: else it goes through a thread
    status: Texts = None,
    kind: Texts = None,
    lane: Texts = None,
    tenant: Texts = None,
    label: Texts = None,
    created_after: When = None,
    created_before: When = None,
) -> Filter:
    return make_filter(
        status=status,
        kind=kind,
        lane=lane,
        tenant=tenant,
        label=label,
        created_after=created_after,
        created_before=created_before,
    )


#: What `GET /v1/jobs` and `GET /v1/stream` take in the query string.
JobFilter = Annotated[Filter, Depends(_job_filter)]


def _read_labels(label: Sequence[str] | None) -> dict[str, str] | None:
    """`project:x` to name and value; the value may have colons of its own."""
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
        message = "use the next_cursor of the page before"
        raise Problem("invalid", f"cursor: {message}", errors=[{"field": "cursor", "message": message}]) from error


def _several(value: str | list[str] | None) -> list[str] | None:
    return [value] if isinstance(value, str) else value
