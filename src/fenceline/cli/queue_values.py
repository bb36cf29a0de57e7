"""What commands and both queues speak of."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

StatsName = Literal["backlog", "active", "errors", "throughput", "slow"]
Expiry = datetime | Literal["never"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The lanes and kinds that a token is for; None: any."""

    lanes: list[str] | None = None
    kinds: list[str] | None = None


def bucket_seconds(seconds: float) -> float:
    """How long the spans of a throughput are, so that there are about 30 of them."""
    return max(1.0, seconds / 30)
