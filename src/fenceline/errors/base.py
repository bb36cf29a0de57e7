"""What all exceptions share."""


class FencelineError(Exception):
    """The root of all of them."""


class RefusedError(FencelineError):
    """The state machine refused a call; the database is unchanged.

    `code` is the same word in SQL messages, HTTP problems and the command line; `detail` names the culprit where
    there is one (the holder of a lock, the status that did not fit).
    """

    code = "refused"

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.detail = detail
        self.hint = hint


class Unsupported(FencelineError):
    """Not possible where this handler runs."""
