"""Rate limits: buckets that refill continuously. Counted per server process."""

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

from fenceline.model.identity import Identity
from fenceline.server.problems import Problem

MAX_REMEMBERED = 10_000

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """A dict that keeps only the keys that were set last."""

    def __init__(self, most: int = MAX_REMEMBERED) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class Buckets:
    """`per_second` for every key, and up to `burst` at once if nothing was taken for a while."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = max(burst, 1.0)
        self._levels: Recent[Hashable, tuple[float, float]] = Recent()

    def wait(self, key: Hashable) -> float:
        """Seconds until one can be taken; 0 if now."""
        return max(0.0, (1 - self._level(key)[0]) / self._per_second)

    def take(self, key: Hashable) -> float:
        """Take one, and return 0; or the seconds until there is one."""
        level, now = self._level(key)
        if level < 1:
            return (1 - level) / self._per_second
        self._levels[key] = (level - 1, now)
        return 0.0

    def _level(self, key: Hashable) -> tuple[float, float]:
        now = time.monotonic()
        level, at = self._levels.get(key, (self._burst, now))
        return min(self._burst, level + (now - at) * self._per_second), now


class RateLimit:
    """Requests per second of one token, and of one tenant, with a burst of as many; 0 for no limit."""

    def __init__(self, per_token: float, per_tenant: float = 0.0) -> None:
        self._per_token, self._per_tenant = per_token, per_tenant
        self._tokens = Buckets(per_token, per_token)
        self._tenants = Buckets(per_tenant, per_tenant)

    def take(self, identity: Identity) -> None:
        """Count one request. Raises Problem `limited`, with the seconds to wait."""
        token = (identity.token_id, identity.tenant, identity.actor)
        if self._per_token and (wait := self._tokens.take(token)):
            raise limited(f"more than {self._per_token:g} requests per second with this token", wait)
        if self._per_tenant and (wait := self._tenants.take(identity.tenant)):
            raise limited(f"more than {self._per_tenant:g} requests per second of this tenant", wait)


class Suspicion:
    """Refusals (401, 403) per second of one address, with a burst of ten times as many; 0 for no limit.

    An address that has used them up is answered 429 without a query, except for tokens that were admitted before: one
    client that guesses tokens does not shut out others behind the same address.
    """

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._refusals = Buckets(per_second, 10 * per_second) if per_second else None
        self._good: Recent[bytes, None] = Recent()

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
        if self._refusals is not None and credentials is not None:
            self._good[_digest(credentials)] = None


def _digest(credentials: str) -> bytes:
    return hashlib.sha256(credentials.encode()).digest()


def limited(why: str, seconds: float) -> Problem:
    return Problem("limited", why, headers={"Retry-After": str(math.ceil(seconds))})
