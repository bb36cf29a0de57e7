"""Encrypted values as they are stored: for `fenceline rekey`, the only one that sees tokens instead of values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fenceline.database.call import Call, function, jsonb, rows_of, tuples_of, value_of
from fenceline.database.calls.enqueue import Enqueued, enqueued

#: The kind of the jobs that encrypt everything anew.
KIND = "fenceline.rekey"


@dataclass(frozen=True, slots=True)
class SealedValue:
    """A row with something sealed in it; `place` and `value` are JSON text, None where there is nothing."""

    job_id: int | None
    source: str
    place: str | None
    value: str | None


def sealed_values(after: int | None, limit: int) -> Call[list[SealedValue]]:
    """Those of the next jobs after this one; none if there are no more. After None: the secrets of webhooks."""
    return replace(tuples_of(SealedValue, function("sealed_values", locals())), opens=False)


def replace_sealed(changes: Sequence[dict[str, Any]]) -> Call[int]:
    """How many were still as they were read, and are replaced."""
    call: Call[int] = value_of(function("replace_sealed", values=jsonb(changes)), repeatable=True)
    return replace(call, opens=False)


def start_rekey(*, actor: str | None) -> Call[Enqueued]:
    return rows_of(function("start_rekey", locals()), "job_id, created", enqueued, repeatable=True)  # by its dedupe key
