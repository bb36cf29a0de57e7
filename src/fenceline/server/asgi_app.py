"""Creates the application: state, routes, errors, life cycle.

    uvicorn.Server(uvicorn_config(create_app(ServerSettings(), app))).run()

To add a family of routes: a module with `routes = router("family")`, listed in `FAMILIES`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from sse_starlette.sse import AppStatus
from starlette.middleware.cors import CORSMiddleware

from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.client.handler_parts import HandlerParts, handler_parts
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
    health,
    incoming_webhooks,
    job_actions,
    job_records,
    jobs,
    lane_wakeups,
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

#: Modules with routes. Bulk comes before the routes with an id, which would take "bulk" for one.
FAMILIES = (
    bulk, jobs, job_actions, job_records, runners, attempts, signals, admin, audit, upkeep, streams, schedules,
    incoming_webhooks, outgoing_webhooks, webhook_secrets, stats, tokens, roles, session_routes, health, metrics,
    openapi, pages,
)  # fmt: skip

#: How many bodies of triggers are read at a time, before anybody knows who sent them.
TRIGGER_BODIES, TRIGGER_BODIES_PER_ADDRESS = 64, 16
STOP_POLL_SECONDS = 0.2


class Server:
    """What the routes share, one per process."""

    def __init__(self, settings: ServerSettings, app: App) -> None:
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
        #: For work that may take a while and must not hold up requests.
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
        # Somebody who signs in has no identity yet, and waits with the requests without a token.
        self.sessions = Sessions(settings, self.turns.of(""), self.authenticator)
        self.hub = Hub(
            self.turns,
            self.authenticator,
            streams_per_token=settings.streams_per_token,
            stream_seconds=settings.stream_seconds,
        )
        #: What this server listens for, on one connection: channel → handler of the payload.
        self.channels: dict[str, Callable[[str], None]] = {
            calls.streams.CHANGED: self.hub.on_notify,
            lane_wakeups.CHANNEL: self.ready.on_notify,
        }

    def handler(self, kind: str) -> HandlerParts | None:
        """The handler in the app that the server was started with, if it has one for the kind."""
        found = app_parts(self.app).handlers.get(kind)
        return None if found is None else handler_parts(found)

    async def identify(self, request: ApiRequest) -> Identity:
        """Who the caller is. Raises Problem `unauthenticated`."""
        if self.settings.no_auth:
            refuse_strangers(request)
            return EVERYBODY
        secret = request.session_secret
        if secret is not None:
            return await self.sessions.identify(request, secret)
        return await self.authenticator.identify(request.headers.get("authorization"))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Background work, for as long as the server is up."""
        listener = Listener(
            self.database.connect, self.channels, on_connect=self.hub.look_again, send=self.database.call
        )
        deliverer = WebhookDeliveries(
            self.database,
            SafePost(allow_http=self.settings.hooks_allow_http, allowed=self.settings.hooks_allow_private),
            self.ready,
        )
        work: dict[str, Coroutine[Any, Any, None]] = {
            "listener": listener.run(),
            "streams": self.hub.run(),
            "farewell": self._answer_waiting_runners(),
        }
        if self.settings.maintain:
            work["maintenance"] = Maintenance(self.maintenance.call).run()
            if app_parts(self.app).delivery.make_backend is not None:
                work["messages"] = app_parts(self.app).sender(self.maintenance).keep_sending()
        if self.settings.deliver:
            work["webhooks"] = deliverer.run()
        tasks = [asyncio.create_task(each, name=name) for name, each in work.items()]
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
        """Let waiting claims return when uvicorn is told to stop: it ends this lifespan only after all requests."""
        while not AppStatus.should_exit:  # noqa: ASYNC110 - a flag of the library that streams use
            await asyncio.sleep(STOP_POLL_SECONDS)
        self.ready.close()


def refuse_strangers(request: ApiRequest) -> None:
    """Without authentication, a page in the user's browser must not act for the user: neither one of another site, nor
    one whose host name was made to resolve to this machine.
    """
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    is_near = is_loopback(name_of(host)) and (origin is None or is_loopback(name_of(origin.partition("://")[2])))
    if not is_near:
        raise Problem("forbidden", "without authentication only this machine is served, under a loopback address")


def create_app(settings: ServerSettings | None = None, app: App | None = None) -> FastAPI:
    """The ASGI application. It uses the database of `app`, and validates the args of its kinds at enqueue."""
    server = Server(settings or ServerSettings(), app or App())
    api = Api(
        title="Fenceline",
        version=version("fenceline"),
        description="A PostgreSQL-native job queue: jobs, lanes, operators.",
        lifespan=lambda _api: server.running(),
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        openapi_url=None,  # a route of ours
        redirect_slashes=False,
    )
    api.state.server = server
    if server.settings.origins:
        # For signing in and reading; other changes come from this server's own pages only (dashboard/origin.py).
        api.add_middleware(
            CORSMiddleware,
            allow_origins=server.settings.origins,
            allow_credentials=True,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Content-Type", "Last-Event-ID"],
        )
    problems.install(api)
    for family in FAMILIES:
        api.include_router(family.routes)
    return api
