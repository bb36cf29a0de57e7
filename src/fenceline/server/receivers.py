"""Who gets how much of a server's time for deliveries, and who gets none for a while.

A receiver that does not answer holds a place until its time is over. So one receiver, and one tenant, has only some of
the places; and a receiver that has failed several times in a row is not tried at all until a pause is over, which grows
while it goes on failing. Then one delivery tries it: if that succeeds, all is as before.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

PLACES_PER_RECEIVER = 4
PLACES_PER_TENANT = 8
FAILURES_TO_OPEN = 5
FIRST_PAUSE_SECONDS = 15.0
MAX_PAUSE_SECONDS = 600.0
#: Receivers remembered at most; those that did well are forgotten at once.
MAX_RECEIVERS = 10_000


class Busy(Exception):
    """The receiver, or the tenant, has all the places that it may have."""


class CircuitOpen(Exception):
    """The receiver has failed too often: it is not tried before so many seconds are over."""

    def __init__(self, receiver: str, seconds: float) -> None:
        super().__init__(f"{receiver} failed {FAILURES_TO_OPEN} times in a row: it is not tried for {seconds:.0f} s")


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    pause_seconds: float = FIRST_PAUSE_SECONDS
    open_until: float = 0.0
    is_probed: bool = False


def receiver_of(url: str) -> str:
    """Scheme, host and port: what fails together."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


class Receivers:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at_receiver: Counter[tuple[str, str]] = Counter()
        self._at_tenant: Counter[str] = Counter()
        # By tenant too: nobody can have another's deliveries held back by naming the same receiver.
        self._circuits: dict[tuple[str, str], _Circuit] = {}

    @contextlib.contextmanager
    def place(self, tenant: str, url: str) -> Iterator[Callable[[bool], None]]:
        """A place for one delivery; call what it gives with whether the receiver is well. Raises Busy, CircuitOpen."""
        receiver = (tenant, receiver_of(url))
        circuit = self._circuits.get(receiver)
        if circuit is not None:
            self._pass(circuit, receiver[1])
        if self._at_receiver[receiver] >= PLACES_PER_RECEIVER or self._at_tenant[tenant] >= PLACES_PER_TENANT:
            raise Busy
        self._at_receiver[receiver] += 1
        self._at_tenant[tenant] += 1
        try:
            yield lambda is_well: self._note(receiver, is_well=is_well)
        finally:
            _leave(self._at_receiver, receiver)
            _leave(self._at_tenant, tenant)
            if circuit is not None:
                circuit.is_probed = False

    def _pass(self, circuit: _Circuit, receiver: str) -> None:
        """Raises CircuitOpen, unless the circuit is closed, or it is time for the one delivery that tries."""
        left = circuit.open_until - self._clock()
        if circuit.failures < FAILURES_TO_OPEN:
            return
        if left > 0 or circuit.is_probed:
            raise CircuitOpen(receiver, max(left, 1.0))
        circuit.is_probed = True

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


def _leave(counter: "Counter[T]", name: T) -> None:
    counter[name] -= 1
    if counter[name] <= 0:
        del counter[name]
