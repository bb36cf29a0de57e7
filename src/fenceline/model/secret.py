"""The secret of a token or a callback: 256 random bits, of which only the SHA-256 is kept."""

import hashlib
import secrets
from datetime import datetime
from typing import Literal

PREFIX = "fl_"
#: When a token expires; None: after the time that the database is configured with.
Expiry = datetime | Literal["never"] | None


def new_token() -> tuple[str, bytes]:
    """A new token, to be shown once, and its hash."""
    token = PREFIX + secrets.token_urlsafe(32)
    return token, hash_token(token)


def hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
