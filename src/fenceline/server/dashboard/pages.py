"""The pages, which share one shell that a script fills; and the scripts, styles and icons."""

from html import escape

from fastapi import APIRouter, Request, Response

from fenceline.server.dashboard import cookie, oidc_login, origin
from fenceline.server.dashboard.assets import Asset, assets, make_asset
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest
from fenceline.server.server_settings import ServerSettings

#: Public: there is nothing in them that is not in the package on PyPI.
routes = APIRouter(include_in_schema=False)

#: Only our own scripts and styles, and none inline; nothing from or to other sites.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: Paths that are answered with the shell; its script shows the page.
PAGES = (
    "/",
    "/login",
    "/jobs",
    "/jobs/{id}",
    "/lanes",
    "/workers",
    "/schedules",
    "/webhooks",
    "/audit",
    "/tokens",
)


async def page(request: Request) -> Response:
    settings: ServerSettings = request.app.state.server.settings
    origin.check_host(request, settings)
    login = "token oidc" if settings.oidc is not None and settings.oidc.client is not None else "token"
    shell = assets()["index.html"].content.replace(b"{{login}}", login.encode())
    shell = shell.replace(b'="/assets/', f'="{escape(_root(request))}/assets/'.encode())
    return _answer(request, make_asset(shell, "text/html; charset=utf-8"))


for path in PAGES:
    routes.add_api_route(path, page, methods=["GET"])


@routes.get("/assets/{path:path}")
async def asset(request: Request, path: str) -> Response:
    found = assets().get(path)
    if found is None:
        raise Problem("not_found", "there is no such file")
    return _answer(request, found)


@routes.get("/favicon.ico")
async def favicon(request: Request) -> Response:
    return _answer(request, assets()["icon.svg"])


@routes.get(oidc_login.PATH)
async def sign_in_elsewhere(request: Request) -> Response:
    """Redirect to the identity provider, which returns to the path below."""
    login = _login(request)
    attempt = oidc_login.LoginAttempt.new()
    answer = Response(status_code=303, headers={"Location": await login.start(attempt, _callback(request))})
    answer.set_cookie(
        oidc_login.COOKIE,
        attempt.text(),
        max_age=oidc_login.ATTEMPT_SECONDS,
        path=_root(request) + oidc_login.PATH,
        httponly=True,
        samesite="lax",  # it comes back from another site
        secure=request.url.scheme == "https",
    )
    return answer


@routes.get(f"{oidc_login.PATH}/callback")
async def back_from_elsewhere(request: Request, state: str | None = None, code: str | None = None) -> Response:
    """Open the session. Its cookie is not sent with a navigation that another site began, so this page redirects."""
    login = _login(request)
    server = request.app.state.server
    attempt = oidc_login.LoginAttempt.read(request.cookies.get(oidc_login.COOKIE))
    with ApiRequest(request.scope).suspecting():
        identity = await login.finish(attempt, _callback(request), state=state, code=code)
    secret = await server.sessions.open(foreign=identity)
    home = escape(f"{_root(request)}/")
    page = (
        f'<!doctype html><meta http-equiv="refresh" content="0; url={home}"><title>Fenceline</title>'
        f'<a href="{home}">Go on</a>'
    )
    answer = Response(page, headers={"Content-Security-Policy": POLICY}, media_type="text/html")
    cookie.give(request, answer, secret, seconds=server.settings.session_seconds)
    answer.delete_cookie(oidc_login.COOKIE, path=_root(request) + oidc_login.PATH)
    return answer


def _login(request: Request) -> oidc_login.OidcLogin:
    server = request.app.state.server
    origin.check_host(request, server.settings)
    login: oidc_login.OidcLogin | None = server.oidc_login
    if login is None:
        raise Problem("not_found", "this server knows no identity provider to sign in at")
    return login


def _callback(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers['host']}{_root(request)}{oidc_login.PATH}/callback"


def _root(request: Request) -> str:
    """Where an application has mounted us, or nothing."""
    root: str = request.scope.get("root_path", "")
    return root


def _answer(request: Request, found: Asset) -> Response:
    headers = {
        "ETag": found.etag,
        "Cache-Control": "no-cache",  # cached, but revalidated: a new version shows at once
        "Content-Security-Policy": POLICY,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("if-none-match") == found.etag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.media_type)
    return Response(found.content, headers=headers, media_type=found.media_type)
