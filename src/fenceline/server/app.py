"""Makes the application: state, routes, errors, life cycle.

    uvicorn.run(create_app(ServerSettings(), app))

To add a family of routes: a module with `routes = router("family")`, listed in `ROUTERS`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI

from fenceline.client.app import Fenceline
from fenceline.client.listener import Listener
from fenceline.client.maintenance import Maintenance
from fenceline.database import stream_calls, worker_calls
from fenceline.model.identity import Identity
from fenceline.server import (
    access,
    admin,
    attempts,
    audit,
    bulk,
    health,
    hooks,
    job_records,
    job_verbs,
    jobs,
    metrics,
    openapi,
    problems,
    ready,
    runners,
    schedules,
    stats,
    streams,
    triggers,
    upkeep,
)
from fenceline.server.auth import EVERYBODY, Authenticator
from fenceline.server.limits import RateLimit
from fenceline.server.oidc import OidcTokens
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest
from fenceline.server.safe_post import SafePost
from fenceline.server.settings import ServerSettings, is_loopback
from fenceline.server.stream_hub import Hub
from fenceline.server.submitter import Submitter
from fenceline.server.webhooks import Deliverer

ROUTERS: tuple[APIRouter, ...] = (
    bulk.routes,  # before the routes with an id, which would take "bulk" for one
    jobs.routes,
    job_verbs.routes,
    job_records.routes,
    runners.routes,
    attempts.routes,
    admin.routes,
    audit.routes,
    upkeep.routes,
    streams.routes,
    schedules.routes,
    triggers.routes,
    hooks.routes,
    stats.routes,
    access.routes,
    health.routes,
    metrics.routes,
    openapi.routes,
)


class Server:
    """What the routes share, one per process."""

    def __init__(self, settings: ServerSettings, app: Fenceline) -> None:
        self.settings = settings
        self.app = app
        self.caller = app.make_caller(settings.pool_size)
        self.metrics = metrics.ServerMetrics(self.caller)
        self.ready = ready.ReadyLanes()
        self.submitter = Submitter(self.caller)
        self.rate_limit = RateLimit(settings.requests_per_second)
        self.authenticator = Authenticator(
            self.caller,
            cache_seconds=settings.token_cache_seconds,
            foreign=None if settings.oidc is None else OidcTokens(settings.oidc, self.caller),
        )
        self.hub = Hub(
            self.caller,
            lambda open_streams: streams.recheck(self.authenticator, self.caller, open_streams),
            streams_per_token=settings.streams_per_token,
            stream_seconds=settings.stream_seconds,
        )
        #: What this server listens for, all on one connection: channel → what to do with the payload.
        self.channels: dict[str, Callable[[str], None]] = {
            stream_calls.CHANGED: self.hub.hear,
            ready.CHANNEL: self.ready.hear,
        }

    async def identify(self, request: ApiRequest) -> Identity:
        """Who asks. Raises Problem `unauthenticated`."""
        if not self.settings.no_auth:
            return await self.authenticator.identify(request.headers.get("authorization"))
        refuse_strangers(request)
        return EVERYBODY

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The work in the background, for as long as the server is up."""
        tasks: list[asyncio.Task[None]] = []
        maintenance = self.app.make_caller(
            1
        )  # its own connection: a prune may take a while, requests do not wait for it
        if self.settings.maintain:
            tasks.append(asyncio.create_task(Maintenance(maintenance.call).run(), name="maintenance"))
        listener = Listener(self.caller.connect, self.channels, on_connect=self.hub.look_again, send=self.caller.call)
        tasks.append(asyncio.create_task(listener.run(), name="listener"))
        tasks.append(asyncio.create_task(self.hub.run(), name="streams"))
        deliverer = Deliverer(
            self.caller,
            SafePost(allow_http=self.settings.hooks_allow_http, allow_private=self.settings.hooks_allow_private),
        )
        if self.settings.deliver:
            tasks.append(asyncio.create_task(deliverer.run(), name="webhooks"))
        if self.app.handlers:
            # Kinds with a finalizer must be known before the first runner reports the end of one.
            kinds = {kind: handler.declaration for kind, handler in self.app.handlers.items()}
            await self.caller.call(worker_calls.declare_kinds(kinds))
        try:
            yield
        finally:
            self.hub.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await deliverer.close()
            await maintenance.close()
            await self.caller.close()


def refuse_strangers(request: ApiRequest) -> None:
    """Without authentication a browser's page must not speak for the person before it: neither a foreign page, nor one
    whose name was made to point here.
    """
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    origin = request.headers.get("origin")
    if not is_loopback(host) or (origin is not None and not is_loopback(urlsplit(origin).hostname or "")):
        raise Problem("forbidden", "without authentication only this machine is served, under a loopback address")


def create_app(settings: ServerSettings | None = None, app: Fenceline | None = None) -> FastAPI:
    """The ASGI application. `app`: its database is used, and the args of its kinds are validated at enqueue."""
    server = Server(settings or ServerSettings(), app or Fenceline())

    @contextlib.asynccontextmanager
    async def lifespan(_api: FastAPI) -> AsyncIterator[None]:
        async with server.running():
            yield

    api = FastAPI(
        title="Fenceline",
        version=version("fenceline"),
        description="A PostgreSQL-native job queue: jobs, lanes, operators.",
        lifespan=lifespan,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        openapi_url=None,  # a route of ours
        redirect_slashes=False,
    )
    api.state.server = server
    problems.install(api)
    for routes in ROUTERS:
        api.include_router(routes)
    return api
