"""An exception as what the queue keeps of it."""

import json
import traceback
from typing import Any

MAX_TRACEBACK = 8_000


def describe(error: BaseException, *, code: str = "error") -> str:
    """JSON text with code, message, type and traceback."""
    text = "".join(traceback.format_exception(error))
    described: dict[str, Any] = {
        "code": code,
        "message": str(error) or type(error).__name__,
        "type": type(error).__qualname__,
        "traceback": text if len(text) <= MAX_TRACEBACK else "…" + text[-MAX_TRACEBACK:],
    }
    # "replace": a message may carry half a surrogate pair or a zero character, which jsonb cannot hold.
    dumped = json.dumps(described, ensure_ascii=False).replace("\\u0000", "�")
    return dumped.encode("utf-8", "replace").decode("utf-8")
