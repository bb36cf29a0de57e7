"""The log of refused requests: who, from where, why. It contains no tokens, bodies or query strings."""

import logging
from collections import Counter

from fenceline.model.identity import Identity
from fenceline.server.doors import address_key
from fenceline.server.limits import MAX_REMEMBERED, Buckets
from fenceline.server.problems import Problem

log = logging.getLogger("fenceline.refused")

#: Codes worth a line. The others are mistakes in requests, and their details may quote them.
CODES = frozenset(
    {"unauthenticated", "forbidden", "limited", "busy", "timeout", "too_large", "head_too_large", "malformed"}
)
#: Lines per address: a flood of refusals must not become a flood of lines.
LINES_PER_SECOND, LINES_AT_ONCE = 1.0, 20.0
MAX_PATH = 200


class RefusalLog:
    def __init__(self) -> None:
        self._lines = Buckets(LINES_PER_SECOND, LINES_AT_ONCE)
        self._untold: Counter[str] = Counter()

    def add(self, host: str, problem: Problem, *, asked: str = "", who: Identity | None = None) -> None:
        """`asked` is method and path."""
        if problem.code not in CODES:
            return
        key = address_key(host)
        if self._lines.take(key):
            if len(self._untold) < MAX_REMEMBERED or key in self._untold:
                self._untold[key] += 1
            return
        untold = self._untold.pop(key, 0)
        log.warning(
            "refused %d %s%s from %s%s: %s%s",
            problem.status_code,
            problem.code,
            f" {asked[:MAX_PATH]!r}" if asked else "",
            host or "an unknown address",
            "" if who is None else f" by {who.actor!r} (role {who.role}, tenant {who.tenant})",
            problem.detail,
            f" ({untold} more from there were not logged)" if untold else "",
        )
