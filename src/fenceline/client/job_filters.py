"""Which jobs to list; the filters have the names of the HTTP query."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict

from fenceline.model.job import JobFilter

Several = str | Sequence[str] | None


class JobFilters(TypedDict, total=False):
    """Several values of one filter mean any of them; labels must all match. None is the same as left out.

    `parent` is the id of the job whose handler made it. `worker` holds the job, or held it when it ended; `phase` is
    its last. `error` is a text in the error that it ended with, in any case.
    """

    status: Several
    kind: Several
    lane: Several
    tenant: Several
    labels: Mapping[str, str] | None
    created_after: datetime | None
    created_before: datetime | None
    created_by: str | None
    parent: str | None
    group: str | None
    key: str | None
    worker: str | None
    phase: str | None
    error: str | None


def read_filters(filters: JobFilters) -> JobFilter:
    one = {name: value for name, value in filters.items() if name not in {"status", "kind", "lane", "tenant"}}
    return JobFilter(
        statuses=_several(filters.get("status")),
        kinds=_several(filters.get("kind")),
        lanes=_several(filters.get("lane")),
        tenants=_several(filters.get("tenant")),
        **one,  # type: ignore[arg-type]  # the rest has the same names and types
    )


def _several(value: Several) -> list[str] | None:
    if value is None:
        return None
    return [value] if isinstance(value, str) else list(value)
