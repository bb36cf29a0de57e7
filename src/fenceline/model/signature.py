"""How webhooks are signed, in both directions: HMAC-SHA256 over the timestamp, a dot and the body, in hex.

    Fenceline-Timestamp: 1767225600
    Fenceline-Signature: v1=5257a869e7ec…

A secret that others can use to check must be stored as it is; it is shown once, when it is made.
"""

import hashlib
import hmac
import re
import secrets

TIMESTAMP = "Fenceline-Timestamp"
SIGNATURE = "Fenceline-Signature"

_TIMESTAMP = re.compile(r"\d{1,12}", re.ASCII)
_SIGNATURE = re.compile(r"v1=([0-9a-f]{64})", re.ASCII)


def new_secret() -> str:
    return "whsec_" + secrets.token_urlsafe(32)


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """The value of `Fenceline-Signature`."""
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"v1={digest}"


def read_timestamp(text: str | None) -> int | None:
    """Seconds since 1970; None when it is anything else."""
    return int(text) if text is not None and _TIMESTAMP.fullmatch(text) else None


def read_signature(text: str | None) -> bytes | None:
    """The 32 bytes; None when it is anything else."""
    found = None if text is None else _SIGNATURE.fullmatch(text)
    return None if found is None else bytes.fromhex(found[1])
