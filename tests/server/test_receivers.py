"""Places and circuits of receivers, by a clock of the test's own."""

import pytest

from fenceline.server.receivers import (
    FAILURES_TO_OPEN,
    FIRST_PAUSE_SECONDS,
    MAX_PAUSE_SECONDS,
    PLACES_PER_RECEIVER,
    PLACES_PER_TENANT,
    Busy,
    CircuitOpen,
    Receivers,
    receiver_of,
)

URL = "https://a.example/in"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def try_once(receivers: Receivers, *, is_well: bool, tenant: str = "acme", url: str = URL) -> None:
    with receivers.place(tenant, url) as note:
        note(is_well)


def open_circuit(receivers: Receivers) -> None:
    for _ in range(FAILURES_TO_OPEN):
        try_once(receivers, is_well=False)


def test_a_receiver_and_a_tenant_have_only_some_places() -> None:
    receivers = Receivers()
    taken = [receivers.place("acme", URL) for _ in range(PLACES_PER_RECEIVER)]
    for place in taken:
        place.__enter__()
    with pytest.raises(Busy):
        try_once(receivers, is_well=True, url="https://A.example/other")
    more = [receivers.place("acme", f"https://{n}.example") for n in range(PLACES_PER_TENANT - PLACES_PER_RECEIVER)]
    for place in more:
        place.__enter__()
    with pytest.raises(Busy):
        try_once(receivers, is_well=True, url="https://another.example")
    try_once(receivers, is_well=True, tenant="other")
    for place in (*taken, *more):
        place.__exit__(None, None, None)
    try_once(receivers, is_well=True)


def test_a_receiver_that_fails_is_left_alone_then_tried_by_one() -> None:
    clock = Clock()
    receivers = Receivers(clock)
    open_circuit(receivers)
    with pytest.raises(CircuitOpen, match=f"not tried for {FIRST_PAUSE_SECONDS:.0f} s"):
        try_once(receivers, is_well=True)
    try_once(receivers, is_well=True, tenant="other")  # another's view of the same receiver is another's
    clock.now += FIRST_PAUSE_SECONDS
    with receivers.place("acme", URL) as note:
        with pytest.raises(CircuitOpen):
            try_once(receivers, is_well=True)
        note(True)
    try_once(receivers, is_well=True)


def test_the_pause_grows_while_it_goes_on_failing_and_no_further_than_its_limit() -> None:
    clock = Clock()
    receivers = Receivers(clock)
    open_circuit(receivers)
    pauses = []
    for _ in range(10):
        started = clock.now
        while True:
            try:
                try_once(receivers, is_well=False)
                break
            except CircuitOpen:
                clock.now += 1
        pauses.append(clock.now - started)
    assert pauses == sorted(pauses)
    assert pauses[0] == FIRST_PAUSE_SECONDS
    assert pauses[-1] == MAX_PAUSE_SECONDS


def test_failures_count_only_in_a_row() -> None:
    receivers = Receivers(Clock())
    for _ in range(3 * FAILURES_TO_OPEN):
        try_once(receivers, is_well=False)
        try_once(receivers, is_well=True)


def test_a_try_that_says_nothing_lets_the_next_one_try() -> None:
    clock = Clock()
    receivers = Receivers(clock)
    open_circuit(receivers)
    clock.now += FIRST_PAUSE_SECONDS
    with receivers.place("acme", URL):
        pass  # cancelled, or refused before anything was sent
    try_once(receivers, is_well=True)


def test_receivers_are_told_apart_by_host_and_port() -> None:
    assert receiver_of("https://A.example/x?y") == receiver_of("https://a.example/z") == "https://a.example"
    assert receiver_of("https://a.example:8443/") != receiver_of("https://a.example/")


def test_a_probe_that_finds_no_place_leaves_the_probe_to_the_next_delivery() -> None:
    clock = Clock()
    receivers = Receivers(clock)
    open_circuit(receivers)
    clock.now += FIRST_PAUSE_SECONDS
    others = [receivers.place("acme", f"https://{n}.example") for n in range(PLACES_PER_TENANT)]
    for place in others:
        place.__enter__()
    with pytest.raises(Busy):
        try_once(receivers, is_well=True)
    for place in others:
        place.__exit__(None, None, None)
    try_once(receivers, is_well=True)
