"""What is stored encrypted, as it stands: for `fenceline rekey`, which alone looks at tokens instead of values."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fenceline.database.call import As, Call, function, rows_of, statement, value_of
from fenceline.database.calls.enqueue import Enqueued, enqueued
from fenceline.database.decoding import tuples

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
    """Of the next jobs after this one; none: there are no more. After None: the secrets of webhooks."""
    return statement(
        "select job_id, source, place, value from {}",
        function("sealed_values", after=after, limit=limit),
        decode=tuples(SealedValue),
        repeatable=True,
        opens=False,
    )


def replace_sealed(changes: Sequence[dict[str, Any]]) -> Call[int]:
    """How many were still as they were read, and are replaced."""
    call: Call[int] = value_of(function("replace_sealed", values=As("jsonb", json.dumps(changes))), repeatable=True)
    return replace(call, opens=False)


def start_rekey(*, actor: str | None) -> Call[Enqueued]:
    called = function("start_rekey", actor=actor)
    return rows_of(called, "job_id, created", enqueued, repeatable=True)  # by its dedupe key
