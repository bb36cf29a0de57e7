"""Named locks of code outside handlers. Those of handlers are in `context.py`."""

from collections.abc import Sequence
from uuid import UUID

from fenceline.database.call import Call, function, rows_of, value_of
from fenceline.database.decoding import Row, json_value


def take_outside_lock(
    namespace: str, name: str, *, tenant: str, owner: str, holding: Sequence[str], lease_seconds: float, actor: str
) -> Call[int | None]:
    """The fencing token; None if the block must wait."""
    called = function("take_outside_lock", locals(), owner=UUID(owner), holding=[UUID(block) for block in holding])
    return value_of(called, repeatable=True)


def keep_outside_locks(owners: Sequence[str]) -> Call[dict[str, str]]:
    """The owners whose locks were not renewed, and why: `lost` or `busy`."""
    called = function("keep_outside_locks", owners=[UUID(owner) for owner in owners])
    return rows_of(called, "r.owner, r.word", lambda rows: {str(row[0]): row[1] for row in rows}, repeatable=True)


def release_outside_lock(owner: str) -> Call[tuple[bool, str | None]]:
    """Whether the block still had its lease, and which block is next in line."""

    def decode(rows: Sequence[Row]) -> tuple[bool, str | None]:
        answer = json_value(rows)
        return answer["held"], answer["next"]

    return value_of(function("release_outside_lock", owner=UUID(owner)), decode)
