"""The codec of an app that was given none: with the keys in the environment."""

import os

from fenceline.errors import FencelineError
from fenceline.model.sealed import Codec

VARIABLE = "FENCELINE_KEYS"


class InvalidKeys(FencelineError):
    """`$FENCELINE_KEYS` cannot be used."""


def codec_from_environment() -> Codec | None:
    """Fernet keys, separated by commas: the first encrypts, any of them decrypts. Raises InvalidKeys."""
    keys = [key for key in os.environ.get(VARIABLE, "").replace(",", " ").split() if key]
    if not keys:
        return None
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError as error:
        raise InvalidKeys(f"${VARIABLE} needs cryptography: pip install 'fenceline[encryption]'") from error
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        # Without the cause: it may quote the key.
        raise InvalidKeys(
            f"${VARIABLE} holds {len(keys)} keys, and one of them is not 32 bytes in URL-safe Base64: make one with "
            "`fenceline rekey --new-key`"
        ) from None
