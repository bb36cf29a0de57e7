"""Locks of code outside handlers."""

from fenceline.errors.base import FencelineError


class LockTimeout(FencelineError, TimeoutError):
    """The lock could not be taken in time; the block has not been entered."""


class LockLost(FencelineError):
    """The lease of the lock has ended while the block ran: somebody else may have the lock since then."""
