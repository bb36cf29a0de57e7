"""Webhooks, in and out."""

from fenceline.errors.base import RefusedError


class UnknownTrigger(RefusedError):
    """There is no such incoming webhook."""

    code = "unknown_trigger"


class InvalidTrigger(RefusedError):
    """A setting of an incoming webhook breaks a rule, or a body does not fit it."""

    code = "invalid_trigger"


class Replayed(RefusedError):
    """The very same signed request has been accepted before."""

    code = "replayed"


class UnknownHook(RefusedError):
    """There is no such outgoing webhook."""

    code = "unknown_hook"


class InvalidHook(RefusedError):
    """A setting of an outgoing webhook breaks a rule."""

    code = "invalid_hook"
