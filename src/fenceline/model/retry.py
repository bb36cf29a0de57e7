"""When a failed job runs again. The delays themselves are computed in SQL (`retry_delay`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A retry policy: how often a job is tried, and how long it waits in between."""

    max_attempts: int = 3
    """How many attempts there are, including the first."""
    backoff: Literal["quadratic", "exponential", "fixed"] | Sequence[float] = "quadratic"
    """Delay after attempt n: base × n², base × 2ⁿ⁻¹, base, or the nth entry of a list (then its last)."""
    base: float = 2.0
    """The seconds that `backoff` multiplies, see above."""
    jitter: float = 0.1
    """Adds up to this share of the delay, so that jobs that failed together do not retry together."""
    max_delay: float = 86_400.0
    """The longest wait between two attempts, in seconds; `backoff` never exceeds it."""

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts {self.max_attempts} is out of range: use 1 or more")

    def to_json(self) -> dict[str, Any]:
        """The policy as the database keeps it, without `max_attempts`."""
        backoff = self.backoff if isinstance(self.backoff, str) else list(self.backoff)
        return {"backoff": backoff, "base": self.base, "jitter": self.jitter, "max_delay": self.max_delay}


def as_settings(retry: Retry | int) -> dict[str, Any]:
    """What the database is told: the policy and its `max_attempts`; of a number, that alone. Raises ValueError."""
    if isinstance(retry, Retry):
        return {"retry": retry.to_json(), "max_attempts": retry.max_attempts}
    given: Any = retry  # whoever runs no type checker may give anything
    if type(given) is not int or given < 1:
        raise ValueError(f"retry {given!r:.80} is not a policy: use a fenceline.Retry, or how many attempts, 1 or more")
    return {"max_attempts": given}
