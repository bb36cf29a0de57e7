"""Tells of a connection that is lost and of its return: once each, however often is tried meanwhile."""

import logging
import time


class Outage:
    """Those who share it share an outage: the connections of one process to one database, say."""

    def __init__(self, what: str, log: logging.Logger) -> None:
        self._what = what
        self._log = log
        self._since: float | None = None

    def begin(self, why: str) -> None:
        """There is no answer, and it will be tried again."""
        if self._since is not None:
            self._log.debug("still no answer (%s), trying again", why)
            return
        self._since = time.monotonic()
        self._log.warning(
            "connection lost: the %s does not answer (%s), trying again", self._what, why,
            extra={"fields": {"event": "connection_lost", "error": why}},
        )  # fmt: skip

    def end(self) -> None:
        """There is an answer."""
        if self._since is None:
            return
        seconds, self._since = round(time.monotonic() - self._since, 1), None
        self._log.warning(
            "connection regained: the %s answers again after %s s", self._what, seconds,
            extra={"fields": {"event": "connection_regained", "seconds": seconds}},
        )  # fmt: skip
