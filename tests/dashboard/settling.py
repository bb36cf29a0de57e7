"""When a page has everything that it asked for: seen from inside, because its stream stays open."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import APIResponse, Page, Route
from tests.support.patience import give_up, seconds_left

_COUNT = """
window.inFlight = 0;
const send = window.fetch;
window.fetch = (...request) => {
    window.inFlight += 1;
    return send(...request).finally(() => { window.inFlight -= 1; });
};
"""
#: Answers, modules and what they ask for in their turn: nothing in flight in three looks, one after the other.
_SETTLED = """async () => {
    for (let look = 0; look < 3; look += 1) {
        await new Promise((next) => setTimeout(next, 40));
        if (window.inFlight || !document.querySelector("main h1, main .panel")) return false;
    }
    return true;
}"""


def count_requests(page: Page) -> None:
    """Before the page is opened."""
    page.add_init_script(_COUNT)


def settle(page: Page) -> None:
    becomes(page, _SETTLED, "a page that has all that it asked for")


def becomes(page: Page, expression: str, what: str) -> None:
    """Wait until it is true.

    Playwright's `wait_for_function` looks again from inside the page, where the policy of the dashboard forbids `eval`:
    it works only when the first look is the last.
    """
    while not (seen := page.evaluate(expression)):
        if seconds_left() == 0.0:
            give_up(what, seen)
        page.wait_for_timeout(50)


def hold_first_answer(page: Page, path: str) -> Callable[[], tuple[Route, APIResponse]]:
    """The first answer to a request for this path (a regular expression) is kept here, for `answered` to hand out.

    What is returned waits until the answer has come here.
    """
    first: list[Route] = []
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        if first:
            route.continue_()
        else:
            first.append(route)
            held.append((route, route.fetch()))

    def come() -> tuple[Route, APIResponse]:
        while not held:
            if seconds_left() == 0.0:
                give_up(f"the first answer to a request for {path}", first)
            page.wait_for_timeout(20)
        return held[0]

    page.route(re.compile(path), hold)
    return come


@contextmanager
def answered(page: Page, route: Route) -> Iterator[None]:
    """The block answers a request that was held back; afterwards the page has drawn what it makes of the answer."""
    with page.expect_event("requestfinished", lambda request: request == route.request):
        yield
    for _ in range(2):  # its scripts have run before the first frame is drawn, and what they changed before the second
        page.evaluate("() => new Promise(requestAnimationFrame)")
