"""Makes the application: state, routes, errors, life cycle.

    uvicorn.Server(uvicorn_config(create_app(ServerSettings(), app))).run()

To add a family of routes: a module with `routes = router("family")`, listed in `ROUTERS`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from sse_starlette.sse import AppStatus
from starlette.middleware.cors import CORSMiddleware

from fenceline.client.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.client.handler_parts import handler_parts
from fenceline.database import calls
from fenceline.model.identity import Identity
from fenceline.runtime import session_settings
from fenceline.runtime.listener import Listener
from fenceline.runtime.maintenance import Maintenance
from fenceline.server import (
    admin,
    attempts,
    audit,
    bulk,
    explain,
    health,
    incoming_webhooks,
    job_actions,
    job_records,
    jobs,
    lane_wakeups,
    locks,
    metrics,
    openapi,
    outgoing_webhooks,
    problems,
    roles,
    runners,
    schedules,
    signals,
    stats,
    streams,
    tokens,
    upkeep,
    webhook_secrets,
)
from fenceline.server.api import Api
from fenceline.server.auth import EVERYBODY, Authenticator
from fenceline.server.dashboard import pages, session_routes
from fenceline.server.dashboard.oidc_login import OidcLogin
from fenceline.server.dashboard.origin import name_of
from fenceline.server.dashboard.sessions import Sessions
from fenceline.server.doors import Places
from fenceline.server.limits import RateLimit, Suspicion
from fenceline.server.oidc import OidcTokens
from fenceline.server.problems import Problem
from fenceline.server.refusals import RefusalLog
from fenceline.server.routing import ApiRequest
from fenceline.server.safe_post import SafePost
from fenceline.server.server_settings import ServerSettings, is_loopback
from fenceline.server.stream_hub import Hub
from fenceline.server.submitter import Submitter
from fenceline.server.tenant_turns import Turns
from fenceline.server.webhook_delivery import WebhookDeliveries

ROUTERS: tuple[APIRouter, ...] = (
    bulk.routes,  # before the routes with an id, which would take "bulk" for one
    jobs.routes,
    job_actions.routes,
    job_records.routes,
    explain.routes,
    locks.routes,
    runners.routes,
    attempts.routes,
    signals.routes,
    admin.routes,
    audit.routes,
    upkeep.routes,
    streams.routes,
    schedules.routes,
    incoming_webhooks.routes,
    outgoing_webhooks.routes,
    webhook_secrets.routes,
    stats.routes,
    tokens.routes,
    roles.routes,
    session_routes.routes,
    health.routes,
    metrics.routes,
    openapi.routes,
    pages.routes,
)

#: Requests to triggers whose bodies are in memory at a time, before anybody knows whose they are.
TRIGGER_BODIES, TRIGGER_BODIES_PER_ADDRESS = 64, 16
STOP_POLL_SECONDS = 0.2


class Server:
    """What the routes share, one per process."""

    def __init__(self, settings: ServerSettings, app: Fenceline) -> None:
        self.settings = settings
        self.app = app
        limits = session_settings.limits(
            lock_seconds=settings.lock_seconds, statement_seconds=settings.statement_seconds
        )
        self.database = app_parts(app).make_database(settings.pool_size, settings=limits, patient=False)
        self.turns = Turns(
            self.database,
            each=settings.tenant_connections or max(1, settings.pool_size * 2 // 5),
            seconds=settings.lock_seconds + settings.statement_seconds,
        )
        #: For what may take a while, and does not hold up requests.
        long = session_settings.limits(lock_seconds=2.0, statement_seconds=600.0)
        self.maintenance = app_parts(app).make_database(1, settings=long, patient=False)
        self.metrics = metrics.ServerMetrics(self.database, shows_kinds=settings.private_metrics)
        self.readiness = health.Readiness(self.database)
        self.ready = lane_wakeups.ReadyLanes()
        self.submitter = Submitter(self.turns)
        self.rate_limit = RateLimit(settings.requests_per_second, settings.tenant_requests_per_second)
        self.suspicion = Suspicion(settings.refusals_per_second)
        self.refusals = RefusalLog()
        self.trigger_bodies = Places(TRIGGER_BODIES, TRIGGER_BODIES_PER_ADDRESS)
        foreign = None if settings.oidc is None else OidcTokens(settings.oidc, self.database)
        self.authenticator = Authenticator(self.database, cache_seconds=settings.token_cache_seconds, foreign=foreign)
        client = None if settings.oidc is None else settings.oidc.client
        self.oidc_login = None if client is None or foreign is None else OidcLogin(client, foreign)
        # Whoever signs in is nobody yet, and waits among those without a token.
        self.sessions = Sessions(settings, self.turns.of(""), self.authenticator)
        self.hub = Hub(
            self.turns,
            lambda open_streams: streams.recheck(self.authenticator, self.database, open_streams),
            streams_per_token=settings.streams_per_token,
            stream_seconds=settings.stream_seconds,
        )
        #: What this server listens for, all on one connection: channel → what to do with the payload.
        self.channels: dict[str, Callable[[str], None]] = {
            calls.streams.CHANGED: self.hub.on_notify,
            lane_wakeups.CHANNEL: self.ready.on_notify,
        }

    async def identify(self, request: ApiRequest) -> Identity:
        """Who asks. Raises Problem `unauthenticated`."""
        secret = request.session_secret
        if not self.settings.no_auth and secret is not None:
            return await self.sessions.identify(request, secret)
        if not self.settings.no_auth:
            return await self.authenticator.identify(request.headers.get("authorization"))
        refuse_strangers(request)
        return EVERYBODY

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The work in the background, for as long as the server is up."""
        tasks: list[asyncio.Task[None]] = []
        if self.settings.maintain:
            tasks.append(asyncio.create_task(Maintenance(self.maintenance.call).run(), name="maintenance"))
            if app_parts(self.app).delivery.make_backend is not None:
                sending = app_parts(self.app).sender(self.maintenance).keep_sending()
                tasks.append(asyncio.create_task(sending, name="messages"))
        listener = Listener(
            self.database.connect, self.channels, on_connect=self.hub.look_again, send=self.database.call
        )
        tasks.append(asyncio.create_task(listener.run(), name="listener"))
        tasks.append(asyncio.create_task(self.hub.run(), name="streams"))
        tasks.append(asyncio.create_task(self._answer_waiting_runners(), name="farewell"))
        deliverer = WebhookDeliveries(
            self.database,
            SafePost(allow_http=self.settings.hooks_allow_http, allowed=self.settings.hooks_allow_private),
            self.ready,
        )
        if self.settings.deliver:
            tasks.append(asyncio.create_task(deliverer.run(), name="webhooks"))
        if app_parts(self.app).handlers:
            # Kinds with a finalizer must be known before the first runner reports the end of one.
            kinds = {kind: handler_parts(handler).declaration for kind, handler in app_parts(self.app).handlers.items()}
            await self.database.call(calls.workers.declare_kinds(kinds))
        try:
            yield
        finally:
            self.hub.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await deliverer.close()
            await self.maintenance.close()
            await self.database.close()

    async def _answer_waiting_runners(self) -> None:
        """When uvicorn is told to stop: it ends this lifespan only after all requests, which runners make last."""
        while not AppStatus.should_exit:  # noqa: ASYNC110 - a flag, as the streams' own library has it
            await asyncio.sleep(STOP_POLL_SECONDS)
        self.ready.close()


def refuse_strangers(request: ApiRequest) -> None:
    """Without authentication a browser's page must not speak for the person before it: neither a foreign page, nor one
    whose name was made to point here.
    """
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    is_near = is_loopback(name_of(host)) and (origin is None or is_loopback(name_of(origin.partition("://")[2])))
    if not is_near:
        raise Problem("forbidden", "without authentication only this machine is served, under a loopback address")


def create_app(settings: ServerSettings | None = None, app: Fenceline | None = None) -> FastAPI:
    """The ASGI application. `app`: its database is used, and the args of its kinds are validated at enqueue."""
    server = Server(settings or ServerSettings(), app or Fenceline())

    @contextlib.asynccontextmanager
    async def lifespan(_api: FastAPI) -> AsyncIterator[None]:
        async with server.running():
            yield

    api = Api(
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
    if server.settings.origins:
        # Signing in, and reading: other changes take a page of this server (dashboard/origin.py).
        api.add_middleware(
            CORSMiddleware,
            allow_origins=server.settings.origins,
            allow_credentials=True,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Content-Type", "Last-Event-ID"],
        )
    problems.install(api)
    for routes in ROUTERS:
        api.include_router(routes)
    return api
