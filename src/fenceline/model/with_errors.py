"""What a handler returns when it is done, but not with everything."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WithErrors:
    """A result that comes with errors: the job ends as `succeeded_with_errors`, and keeps both.

    return WithErrors({"built": 7}, ["chapter 3: missing image"])
    """

    value: Any
    errors: Sequence[Any]
