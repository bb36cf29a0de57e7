"""When a failed job runs again. The delays themselves are computed in SQL (`retry_delay`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A retry policy: at most `max_attempts` attempts, with growing delays between them.

    quadratic: base × n²; exponential: base × 2ⁿ⁻¹; fixed: base; a list: its nth delay, then its last. All in
    seconds, after attempt n. `jitter` adds up to that share of the delay.
    """

    max_attempts: int = 3
    backoff: Literal["quadratic", "exponential", "fixed"] | Sequence[float] = "quadratic"
    base: float = 2.0
    jitter: float = 0.1
    max_delay: float = 86_400.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts {self.max_attempts} is out of range: use 1 or more")

    def to_json(self) -> dict[str, Any]:
        backoff = self.backoff if isinstance(self.backoff, str) else list(self.backoff)
        return {"backoff": backoff, "base": self.base, "jitter": self.jitter, "max_delay": self.max_delay}
