"""How much somebody may ask for: buckets that refill all the time. Counted per server process."""

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Hashable

from fenceline.model.identity import Identity
from fenceline.server.problems import Problem

MAX_REMEMBERED = 10_000


class Buckets:
    """`per_second` for every key, and up to `burst` at once when nothing was taken for a while."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = max(burst, 1.0)
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def wait(self, key: Hashable) -> float:
        """Seconds until one can be taken; 0: now."""
        return max(0.0, (1 - self._level(key)[0]) / self._per_second)

    def take(self, key: Hashable) -> float:
        """Take one; else the seconds until there is one."""
        level, now = self._level(key)
        if level < 1:
            return (1 - level) / self._per_second
        self._levels[key] = (level - 1, now)
        self._levels.move_to_end(key)
        if len(self._levels) > MAX_REMEMBERED:
            self._levels.popitem(last=False)
        return 0.0

    def _level(self, key: Hashable) -> tuple[float, float]:
        now = time.monotonic()
        level, at = self._levels.get(key, (self._burst, now))
        return min(self._burst, level + (now - at) * self._per_second), now


class RateLimit:
    """Requests of one token, and of one tenant, per second, with a burst of as many; 0: as many as they like."""

    def __init__(self, per_token: float, per_tenant: float = 0.0) -> None:
        self._limits = [
            (what, per_second, Buckets(per_second, per_second), key)
            for what, per_second, key in (
                ("with this token", per_token, _token),
                ("of this tenant", per_tenant, _tenant),
            )
            if per_second
        ]

    def take(self, identity: Identity) -> None:
        """Count one request. Raises Problem `limited`, with the seconds to wait."""
        for what, per_second, buckets, key in self._limits:
            wait = buckets.take(key(identity))
            if wait:
                raise limited(f"more than {per_second:g} requests per second {what}", wait)


class Suspicion:
    """Refusals (401, 403) of one address per second, with a burst of ten times as many; 0: as many as they like.

    An address that has used them up is answered 429 before anything is asked of the database, but for tokens that were
    let in before: one that guesses does not shut out who works behind the same address.
    """

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._refusals = Buckets(per_second, 10 * per_second) if per_second else None
        self._good: OrderedDict[bytes, None] = OrderedDict()

    def check(self, address: str, credentials: str | None) -> None:
        """Raises Problem `limited`."""
        if self._refusals is None:
            return
        wait = self._refusals.wait(address)
        if wait and (credentials is None or _digest(credentials) not in self._good):
            raise limited(f"more than {self._per_second:g} refused requests per second from this address", wait)

    def refused(self, address: str, credentials: str | None) -> None:
        if self._refusals is not None:
            self._refusals.take(address)
            if credentials is not None:
                self._good.pop(_digest(credentials), None)

    def admitted(self, credentials: str | None) -> None:
        if self._refusals is None or credentials is None:
            return
        digest = _digest(credentials)
        self._good[digest] = None
        self._good.move_to_end(digest)
        if len(self._good) > MAX_REMEMBERED:
            self._good.popitem(last=False)


def _digest(credentials: str) -> bytes:
    return hashlib.sha256(credentials.encode()).digest()


def _token(identity: Identity) -> Hashable:
    return (identity.token_id, identity.tenant, identity.actor)


def _tenant(identity: Identity) -> Hashable:
    return identity.tenant


def limited(why: str, seconds: float) -> Problem:
    return Problem("limited", why, headers={"Retry-After": str(math.ceil(seconds))})
