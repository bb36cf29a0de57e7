"""A traceback as whoever wrote the handler wants it: from their own code on."""

import asyncio
from pathlib import Path
from types import TracebackType

_PACKAGE = Path(__file__).parents[1]
#: Where handlers are called from. What they call in turn comes later in the traceback, and stays.
_OURS = (
    *(f"{_PACKAGE / name}/" for name in ("client", "context", "delivery", "engine", "runtime", "worker")),
    f"{Path(asyncio.__file__).parent}/",
    "uvloop/",
)


def strip(error: BaseException) -> None:
    """Let the error's traceback begin with the first frame that is not of those who call handlers; with none, if there
    is no such frame.
    """
    frames: TracebackType | None = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    error.__traceback__ = frames
