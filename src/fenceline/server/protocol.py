"""uvicorn's HTTP/1.1 protocol, with a limit on everything that an unknown client can start.

Until the token has been checked, a connection costs little and does not last: the head of a request is limited in bytes
and seconds, its body and the silence between requests in seconds, and a body is not read before the application asks
for it. An answer that the client does not read is dropped. When a client disconnects, its request is cancelled,
including its statement in the database.

     accepted ──► head ──► body ──► (answer) ──► idle ──► head …
                  408,431  408      cut          closed
"""

import asyncio
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from fenceline.server.doors import Places, Proxies, address_key
from fenceline.server.problems import Problem
from fenceline.server.refusals import RefusalLog
from fenceline.server.server_settings import EdgeSettings

#: In a scope's `extensions`: the connection that a request came over.
CONNECTION = "fenceline.connection"
#: For the rest of a body whose request has been answered, and for the client to read the last answer.
LINGER_SECONDS = 2.0
#: A colon, a space and the end of the line.
HEADER_FRAME = 4


class Phase(Enum):
    """What a connection waits for."""

    NOTHING = "nothing"
    HEAD = "head"
    BODY = "body"


@dataclass(slots=True)
class Edge:
    """What the connections of one server share."""

    settings: EdgeSettings
    log: RefusalLog
    places: Places = field(init=False)
    proxies: Proxies = field(init=False)

    def __post_init__(self) -> None:
        self.places = Places(self.settings.max_connections, self.settings.connections_per_address)
        self.proxies = Proxies(self.settings.trusted_proxies)

    def key(self, host: str) -> str | None:
        """The key for `Places`; a trusted proxy stands for many clients."""
        return None if host in self.proxies else address_key(host)

    def enter(self, host: str) -> bool:
        """Whether there is a place for one more connection; if so, it must leave later."""
        return self.places.take(self.key(host))

    def leave(self, host: str) -> None:
        self.places.give_back(self.key(host))


class EdgeProtocol(HttpToolsProtocol):
    """`entered`: the connection already has its place."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        edge: Edge,
        entered: bool = False,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._edge = edge
        self._has_place = entered
        self._phase = Phase.HEAD
        self._waiting: asyncio.TimerHandle | None = None  # for what the client is to send next
        self._stalled: asyncio.TimerHandle | None = None  # the client does not read what we send
        self._lingering: asyncio.TimerHandle | None = None  # until the client has read the last answer
        self._new_bytes = 0
        self._overhead = 0  # bytes of this request that are not its body
        self._body = 0
        #: The task of the request that is being answered.
        self.task: asyncio.Task[Any] | None = None
        self.is_gone = False

    @property
    def has_certificate(self) -> bool:
        """Whether the client has presented one that our authority signed; any other fails the handshake."""
        return bool(self.transport.get_extra_info("peercert"))

    @property
    def host(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        super().connection_made(transport)
        self._has_place = self._has_place or self._edge.enter(self.host)
        if self._has_place:
            self._expect()
        else:
            self._refuse(Problem("busy", "there are too many connections, in all or from this address"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_stalled()
        if self._lingering is not None:
            self._lingering.cancel()
        if self._has_place:
            self._has_place = False
            self._edge.leave(self.host)
        is_answering = self._is_answering
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.is_gone = True
        if self.task is not None and is_answering:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        if self.is_refused:
            return
        if self._phase is Phase.NOTHING:
            self._phase = Phase.HEAD
        before = self._phase
        self._new_bytes = len(data)
        super().data_received(data)
        self._overhead += max(0, self._new_bytes)
        if self._phase is Phase.NOTHING or self.is_refused:
            return
        if self._overhead > self._edge.settings.max_header_bytes + self._body:
            self._refuse(self._too_much())
            return
        if self._phase is Phase.BODY and before is Phase.HEAD and not self.cycle.response_complete:
            # Read no more than what came with the head until the application has checked whose request it is.
            self.flow.pause_reading()
        self._expect()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION: self}  # type: ignore[dict-item]  # an object, for our own application
        self._phase = Phase.HEAD
        # The rest of these bytes is not counted, not even for the next request: that is one read at most.
        self._overhead = self._body = self._new_bytes = 0

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._phase = Phase.BODY
        size = len(self.url) + sum(len(name) + len(value) + HEADER_FRAME for name, value in self.headers)
        if size > self._edge.settings.max_header_bytes:
            self._refuse(self._too_much())
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._new_bytes -= len(body)
        self._body += len(body)
        if not self.is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._stop_waiting()
        self._phase = Phase.NOTHING
        if self.is_refused:
            return
        super().on_message_complete()
        if self.cycle.response_complete and self.timeout_keep_alive_task is None:
            # Answered before the body's end: the rest of the body has stopped uvicorn's own timer.
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._wait_for_last_bytes()
        elif self._phase is Phase.BODY and not self.pipeline:
            self._stop_waiting()
            self._waiting = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_stalled()
        self._stalled = self.loop.call_later(self._edge.settings.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stalled()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._wait_for_last_bytes()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's message
        self._refuse(Problem("malformed", "this is not HTTP/1.1"))

    def _unsupported_upgrade_warning(self) -> None:
        """No warning: the request is answered as if it had not asked for an upgrade."""

    @property
    def is_refused(self) -> bool:
        return self.transport.is_closing()

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _expect(self) -> None:
        """Start the timer of the phase, unless it is running."""
        if self._waiting is not None:
            return
        settings = self._edge.settings
        seconds = settings.header_seconds if self._phase is Phase.HEAD else settings.body_seconds
        self._waiting = self.loop.call_later(seconds, self._give_up, self._phase, seconds)

    def _give_up(self, phase: Phase, seconds: float) -> None:
        self._waiting = None
        self._refuse(Problem("timeout", f"the {phase.value} of the request took more than {seconds:g} s"))

    def _too_much(self) -> Problem:
        most = self._edge.settings.max_header_bytes
        return Problem(
            "head_too_large", f"the head of the request, or what frames its body, has more than {most} bytes"
        )

    def _refuse(self, problem: Problem) -> None:
        """Answer if nothing else is being answered, and close."""
        self._stop_waiting()
        if self.is_refused:
            return
        self._edge.log.add(self.host, problem)
        if self._is_turn():
            self.transport.write(problem.http_text())
        self.transport.close()
        self._wait_for_last_bytes()

    def _is_turn(self) -> bool:
        """Whether the next answer on this connection belongs to the request that is being read."""
        if not self._is_answering:
            return True
        return self._phase is Phase.BODY and not self.pipeline and not self.cycle.response_started

    def _wait_for_last_bytes(self) -> None:
        """A closing transport first sends what it has, however long that takes. Reading a part of it buys no time."""
        if self._lingering is None:
            self._lingering = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _stop_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
