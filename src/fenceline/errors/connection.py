"""The database cannot be reached, or not now."""

from fenceline.errors.base import FencelineError, RefusedError


class DatabaseUnavailable(FencelineError):
    """No connection could be made, or the server refuses for the time being (a full disk, say): nothing was done."""


class DatabaseBusy(FencelineError):
    """Others hold what the statement needs; it was given up, and nothing was done."""


class ConnectionLost(FencelineError):
    """The connection broke while a statement was under way: it may or may not have been carried out."""


class WrongIsolation(RefusedError):
    """Fenceline needs READ COMMITTED."""

    code = "wrong_isolation"
