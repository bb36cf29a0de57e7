"""How others sign the webhooks that they send, beside our own way. All are HMAC-SHA256 over something and the body:

| scheme | headers | before the body |
|---|---|---|
| fenceline | Fenceline-Timestamp, Fenceline-Signature: v1=hex | timestamp, dot |
| github | X-Hub-Signature-256: sha256=hex | nothing |
| slack | X-Slack-Request-Timestamp, X-Slack-Signature: v0=hex | v0, colon, timestamp, colon |
| stripe | Stripe-Signature: t=timestamp,v1=hex (several v1 while a secret is changed) | timestamp, dot |
| standard | webhook-id, webhook-timestamp, webhook-signature: v1,base64 (one or more) | id, dot, timestamp, dot |

The key is the secret as it is; that of Standard Webhooks is the base64 behind `whsec_`.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fenceline.model.signature import SIGNATURE, TIMESTAMP, new_secret, read_signature, read_timestamp

_GITHUB = re.compile(r"sha256=([0-9a-f]{64})", re.ASCII)
_SLACK = re.compile(r"v0=([0-9a-f]{64})", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MESSAGE_ID = re.compile(r"[!-~]{1,400}")
_STANDARD_PREFIX = "whsec_"
_STANDARD_KEY_BYTES = range(16, 129)  # the specification says 24 to 64; senders are less strict
#: In a header: nobody has more secrets at a time, and each signature is compared.
_MAX_SIGNATURES = 10


class BadSecret(ValueError):
    """A secret that a scheme cannot use; the text says why."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request claims about its signature; `timestamp` is None if the scheme has none."""

    signatures: tuple[bytes, ...]
    before: bytes = b""
    timestamp: int | None = None

    def start(self, key: bytes) -> hmac.HMAC:
        """For a body that comes in pieces: update it with each; its digest is the signature."""
        return hmac.new(key, self.before, hashlib.sha256)

    def fits(self, signing: hmac.HMAC) -> bool:
        """Whether one of the signatures is that one; each is compared in constant time."""
        digest = signing.digest()
        return any([hmac.compare_digest(digest, signature) for signature in self.signatures])  # noqa: C419 - all


@dataclass(frozen=True, slots=True)
class Scheme:
    """`wanted` says what headers a request must have."""

    read: Callable[[Mapping[str, str]], Claim | None]
    wanted: str
    key: Callable[[str], bytes] = str.encode
    make_secret: Callable[[], str] | None = None  # None: the sender makes it


def _fenceline(headers: Mapping[str, str]) -> Claim | None:
    timestamp, signature = read_timestamp(headers.get(TIMESTAMP)), read_signature(headers.get(SIGNATURE))
    if timestamp is None or signature is None:
        return None
    return Claim((signature,), f"{timestamp}.".encode(), timestamp)


def _github(headers: Mapping[str, str]) -> Claim | None:
    found = _GITHUB.fullmatch(headers.get("X-Hub-Signature-256", ""))
    return None if found is None else Claim((bytes.fromhex(found[1]),))


def _slack(headers: Mapping[str, str]) -> Claim | None:
    timestamp = read_timestamp(headers.get("X-Slack-Request-Timestamp"))
    found = _SLACK.fullmatch(headers.get("X-Slack-Signature", ""))
    if timestamp is None or found is None:
        return None
    return Claim((bytes.fromhex(found[1]),), f"v0:{timestamp}:".encode(), timestamp)


def _stripe(headers: Mapping[str, str]) -> Claim | None:
    parts = [part.strip().partition("=") for part in headers.get("Stripe-Signature", "").split(",")]
    times = [read_timestamp(value) for name, _, value in parts if name == "t"]
    # Those of other versions are passed over, as Stripe asks for: they would let somebody choose a weaker one.
    signatures = [bytes.fromhex(value) for name, _, value in parts if name == "v1" and _HEX.fullmatch(value)]
    if len(times) != 1 or times[0] is None or not 0 < len(signatures) <= _MAX_SIGNATURES:
        return None
    return Claim(tuple(signatures), f"{times[0]}.".encode(), times[0])


def _standard(headers: Mapping[str, str]) -> Claim | None:
    timestamp = read_timestamp(headers.get("webhook-timestamp"))
    message_id = headers.get("webhook-id", "")
    parts = [part.partition(",") for part in headers.get("webhook-signature", "").split()]
    signatures = [found for version, _, text in parts if version == "v1" and (found := _base64(text)) is not None]
    if timestamp is None or not _MESSAGE_ID.fullmatch(message_id) or not 0 < len(signatures) <= _MAX_SIGNATURES:
        return None
    return Claim(tuple(signatures), f"{message_id}.{timestamp}.".encode(), timestamp)


def _standard_key(secret: str) -> bytes:
    key = _base64(secret.removeprefix(_STANDARD_PREFIX))
    if key is None or len(key) not in _STANDARD_KEY_BYTES:
        raise BadSecret(f"a secret of Standard Webhooks is {_STANDARD_PREFIX} and the base64 of 24 to 64 bytes")
    return key


def _new_standard_secret() -> str:
    return _STANDARD_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


SCHEMES: Mapping[str, Scheme] = {
    "fenceline": Scheme(
        _fenceline, f"{TIMESTAMP} (seconds since 1970) and {SIGNATURE} (v1= and 64 hex digits)", make_secret=new_secret
    ),
    "github": Scheme(_github, "X-Hub-Signature-256 (sha256= and 64 hex digits)", make_secret=new_secret),
    "slack": Scheme(_slack, "X-Slack-Request-Timestamp and X-Slack-Signature (v0= and 64 hex digits)"),
    "stripe": Scheme(_stripe, "Stripe-Signature (t=seconds since 1970, v1=64 hex digits)"),
    "standard": Scheme(
        _standard,
        "webhook-id, webhook-timestamp (seconds since 1970) and webhook-signature (v1, and base64)",
        key=_standard_key,
        make_secret=_new_standard_secret,
    ),
}
