"""How much one token may ask for: a bucket per actor that refills all the time."""

import math
import time
from collections import OrderedDict

from fenceline.model.identity import Identity
from fenceline.server.problems import Problem

MOST_REMEMBERED = 10_000


class RateLimit:
    """`per_second` requests, and a burst of as many when nothing was asked for a second. Counted per server process."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._burst = max(per_second, 1.0)
        self._buckets: OrderedDict[tuple[int | None, str, str], tuple[float, float]] = OrderedDict()

    def take(self, identity: Identity) -> None:
        """Count one request. Raises Problem `limited`, with the seconds to wait."""
        key = (identity.token_id, identity.tenant, identity.actor)
        now = time.monotonic()
        tokens, at = self._buckets.get(key, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._per_second)
        if tokens < 1:
            wait = (1 - tokens) / self._per_second
            raise Problem(
                "limited",
                f"more than {self._per_second:g} requests per second with this token",
                headers={"Retry-After": str(math.ceil(wait))},
            )
        self._buckets[key] = (tokens - 1, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > MOST_REMEMBERED:
            self._buckets.popitem(last=False)
