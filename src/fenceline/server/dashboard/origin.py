"""Checks that a browser's request comes from our own pages, under one of this server's names.

A browser sends a cookie with every request, so the cookie alone proves nothing. A request also needs the right `Host`
(another name may have been made to resolve to us), no foreign `Origin`, and for a change the session's CSRF token.
"""

import hmac
from urllib.parse import urlsplit

from fastapi import Request

from fenceline.server.dashboard.cookie import CSRF_HEADER, csrf_token
from fenceline.server.problems import Problem
from fenceline.server.server_settings import ServerSettings, is_loopback

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def name_of(authority: str) -> str:
    """The name or address in `name:port`; empty if there is none."""
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
    """Check which page made the request. Raises Problem `forbidden`."""
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
    """Check that a change carries the CSRF token, which only our own pages have. Raises Problem `forbidden`."""
    if request.method in _SAFE_METHODS:
        return
    if not is_own(request):
        raise Problem("forbidden", "with a session, only pages of this server may make changes")
    if not hmac.compare_digest(request.headers.get(CSRF_HEADER, "").encode(), csrf_token(secret).encode()):
        raise Problem("forbidden", f"with a session a change takes the header {CSRF_HEADER} (see GET /v1/session)")


def is_own(request: Request) -> bool:
    """Whether a page under this very address made the request. A proxy may do TLS for us, so schemes may differ."""
    _scheme, _, authority = request.headers.get("origin", "").partition("://")
    return bool(authority) and authority == request.headers.get("host")
