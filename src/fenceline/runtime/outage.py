"""Logs that a connection is lost, and that it is back: once each, however many tries there are in between."""

import logging
import time


class Outage:
    """Connections that share one, such as those of a process to its database, log an outage once."""

    def __init__(self, what: str, log: logging.Logger) -> None:
        self._what = what
        self._log = log
        self._since: float | None = None

    def begin(self, why: str) -> None:
        """No answer; the caller will try again."""
        if self._since is not None:
            self._log.debug("still no answer (%s), trying again", why)
            return
        self._since = time.monotonic()
        self._log.warning(
            "connection lost: the %s does not answer (%s), trying again", self._what, why,
            extra={"fields": {"event": "connection_lost", "error": why}},
        )  # fmt: skip

    def end(self) -> None:
        """Answered."""
        if self._since is None:
            return
        seconds, self._since = round(time.monotonic() - self._since, 1), None
        self._log.warning(
            "connection regained: the %s answers again after %s s", self._what, seconds,
            extra={"fields": {"event": "connection_regained", "seconds": seconds}},
        )  # fmt: skip
