"""The cookie of a session. Scripts cannot read it, and it is never sent with requests from another site's page."""

import hashlib
import hmac

from fastapi import Request, Response

from fenceline.model.secret import PREFIX

#: Browsers accept this prefix only for one host, and only over TLS.
SECURE_NAME = "__Host-fenceline"
#: Without TLS, as on loopback.
PLAIN_NAME = "fenceline"
#: Required in every request that changes something.
CSRF_HEADER = "X-Fenceline-CSRF"


def _is_secure(request: Request) -> bool:
    return bool(request.scope["scheme"] == "https")


def _name(request: Request) -> str:
    return SECURE_NAME if _is_secure(request) else PLAIN_NAME


def read(request: Request) -> str | None:
    """The session's secret, if there is one."""
    found = request.cookies.get(_name(request), "")
    return found if found.startswith(PREFIX) and found.isascii() else None


def give(request: Request, response: Response, secret: str, *, seconds: float) -> None:
    response.set_cookie(
        _name(request), secret, max_age=int(seconds), httponly=True, samesite="strict", secure=_is_secure(request)
    )


def take_back(request: Request, response: Response) -> None:
    response.delete_cookie(_name(request), httponly=True, samesite="strict", secure=_is_secure(request))


def csrf_token(secret: str) -> str:
    """What only our own pages know about the session: derived from its secret."""
    return hmac.new(secret.encode(), b"fenceline csrf", hashlib.sha256).hexdigest()
