"""What a handler returns when it is done, but some of its work failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from typing_extensions import TypeVar

T = TypeVar("T", default=Any)


@dataclass(frozen=True, slots=True)
class WithErrors(Generic[T]):
    """A result that comes with errors: the job ends as `succeeded_with_errors`, and keeps both.

    return WithErrors({"built": 7}, ["chapter 3: missing image"])
    """

    value: T
    errors: Sequence[Any]
