"""The cookie of a session. It is never readable by scripts, and never sent along from another site's page."""

import hashlib
import hmac

from fastapi import Request, Response

from fenceline.model.secret import PREFIX

#: A browser keeps this prefix to one host, and to TLS.
SECURE_NAME = "__Host-fenceline"
#: Without TLS, as on loopback.
PLAIN_NAME = "fenceline"
#: What every request carries that changes something.
CSRF_HEADER = "X-Fenceline-CSRF"


def _is_secure(request: Request) -> bool:
    return bool(request.scope["scheme"] == "https")


def _name(request: Request) -> str:
    return SECURE_NAME if _is_secure(request) else PLAIN_NAME


def read(request: Request) -> str | None:
    """The session's secret; None where there is none."""
    found = request.cookies.get(_name(request), "")
    return found if found.startswith(PREFIX) and found.isascii() else None


def give(request: Request, response: Response, secret: str, *, seconds: float) -> None:
    response.set_cookie(
        _name(request), secret, max_age=int(seconds), httponly=True, samesite="strict", secure=_is_secure(request)
    )


def take_back(request: Request, response: Response) -> None:
    response.delete_cookie(_name(request), httponly=True, samesite="strict", secure=_is_secure(request))


def csrf_token(secret: str) -> str:
    """What a page of ours knows about the session, and another's does not: made from the secret, and not it."""
    return hmac.new(secret.encode(), b"fenceline csrf", hashlib.sha256).hexdigest()
