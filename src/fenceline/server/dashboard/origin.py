"""Whether a browser asks for a page of ours: under a name that this server has, and from no foreign page.

A cookie comes by itself with whatever request a browser makes, so the request has to say more: the right `Host` (a name
that was made to point here is not ours), no foreign `Origin`, and for a change the session's CSRF token.
"""

import hmac
from urllib.parse import urlsplit

from fastapi import Request

from fenceline.server.dashboard.cookie import CSRF_HEADER, csrf_token
from fenceline.server.problems import Problem
from fenceline.server.server_settings import ServerSettings, is_loopback

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def name_of(authority: str) -> str:
    """The name or address in `name:port`; empty where there is none."""
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:  # brackets around no address
        return ""


def check_host(request: Request, settings: ServerSettings) -> None:
    """Raises Problem `forbidden`."""
    host = name_of(request.headers.get("host", ""))
    if not (is_loopback(host) or host == settings.host or host in settings.hosts):
        raise Problem("forbidden", f"browsers are not served under {host[:100]!r} here: start the server with --hosts")


def check_page(request: Request, settings: ServerSettings) -> None:
    """Where it comes from, for a request that a page made. Raises Problem `forbidden`."""
    check_host(request, settings)
    origin = request.headers.get("origin")
    if origin is None:
        if request.headers.get("sec-fetch-site") == "cross-site":
            raise Problem("forbidden", "requests from pages of other sites are refused")
    elif not is_own(request) and origin not in settings.origins:
        raise Problem(
            "forbidden", f"pages of {origin[:100]!r} may not send requests here: start the server with --origins"
        )


def check_change(request: Request, secret: str) -> None:
    """A change takes the token that only our own pages are given. Raises Problem `forbidden`."""
    if request.method in _SAFE_METHODS:
        return
    if not is_own(request):
        raise Problem("forbidden", "with a session, only pages of this server may make changes")
    if not hmac.compare_digest(request.headers.get(CSRF_HEADER, "").encode(), csrf_token(secret).encode()):
        raise Problem("forbidden", f"with a session a change takes the header {CSRF_HEADER} (see GET /v1/session)")


def is_own(request: Request) -> bool:
    """Whether a page under this very address asks. A proxy may speak TLS for us, so the scheme is not compared."""
    _scheme, _, authority = request.headers.get("origin", "").partition("://")
    return bool(authority) and authority == request.headers.get("host")
