"""How many deliveries each receiver and tenant may have under way, and circuit breakers for receivers that fail.

A receiver that does not answer holds a place until its time is over. So one receiver, and one tenant, has only some of
the places; and a receiver that has failed several times in a row is not tried at all during a pause, which grows while
it goes on failing. Then one delivery probes it; if that succeeds, all is as before.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from urllib.parse import urlsplit

from fenceline.server.doors import Places

PLACES_PER_RECEIVER = 4
PLACES_PER_TENANT = 8
FAILURES_TO_OPEN = 5
FIRST_PAUSE_SECONDS = 15.0
MAX_PAUSE_SECONDS = 600.0
#: Most receivers to remember; those that do well are forgotten at once.
MAX_RECEIVERS = 10_000


class Busy(Exception):
    """The receiver or the tenant already uses all its places."""


class CircuitOpen(Exception):
    """The receiver has failed too often, and is not tried for so many seconds."""

    def __init__(self, receiver: str, seconds: float) -> None:
        super().__init__(f"{receiver} failed {FAILURES_TO_OPEN} times in a row: it is not tried for {seconds:.0f} s")


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    pause_seconds: float = FIRST_PAUSE_SECONDS
    open_until: float = 0.0
    is_probed: bool = False


def receiver_of(url: str) -> str:
    """Scheme, host and port, which fail together."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


class Receivers:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at_receiver = Places(inf, PLACES_PER_RECEIVER)
        self._at_tenant = Places(inf, PLACES_PER_TENANT)
        # By tenant too, so that no tenant can hold back another's deliveries to the same receiver.
        self._circuits: dict[tuple[str, str], _Circuit] = {}

    @contextlib.contextmanager
    def place(self, tenant: str, url: str) -> Iterator[Callable[[bool], None]]:
        """Hold a place for one delivery; report whether the receiver is well with the function that this yields.

        Raises Busy, CircuitOpen.
        """
        receiver = (tenant, receiver_of(url))
        probed = self._circuit_to_probe(receiver)
        with self._at_receiver.one(receiver) as is_free, self._at_tenant.one(tenant) as tenant_has_free:
            if not (is_free and tenant_has_free):
                raise Busy
            if probed is not None:
                probed.is_probed = True
            try:
                yield lambda is_well: self._note(receiver, is_well=is_well)
            finally:
                if probed is not None:
                    probed.is_probed = False

    def _circuit_to_probe(self, receiver: tuple[str, str]) -> _Circuit | None:
        """The circuit, if it is open and the next delivery may probe it. Raises CircuitOpen if it may not."""
        circuit = self._circuits.get(receiver)
        if circuit is None or circuit.failures < FAILURES_TO_OPEN:
            return None
        left = circuit.open_until - self._clock()
        if left > 0 or circuit.is_probed:
            raise CircuitOpen(receiver[1], max(left, 1.0))
        return circuit

    def _note(self, receiver: tuple[str, str], *, is_well: bool) -> None:
        if is_well:
            self._circuits.pop(receiver, None)
            return
        circuit = self._circuits.get(receiver)
        if circuit is None:
            if len(self._circuits) >= MAX_RECEIVERS:
                self._circuits.pop(next(iter(self._circuits)))
            circuit = self._circuits[receiver] = _Circuit()
        circuit.failures += 1
        if circuit.failures >= FAILURES_TO_OPEN and circuit.open_until <= self._clock():
            circuit.open_until = self._clock() + circuit.pause_seconds
            circuit.pause_seconds = min(circuit.pause_seconds * 2, MAX_PAUSE_SECONDS)
