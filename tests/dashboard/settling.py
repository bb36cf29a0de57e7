"""When a page has everything that it asked for: seen from inside, because its stream stays open."""

import time

from playwright.sync_api import Page

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
    assert becomes(page, _SETTLED, seconds=20), "the page goes on asking"


def becomes(page: Page, expression: str, *, seconds: float) -> bool:
    """Whether it becomes true in time.

    Playwright's `wait_for_function` looks again from inside the page, where the policy of the dashboard forbids `eval`:
    it works only when the first look is the last.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        if time.monotonic() > end:
            return False
        page.wait_for_timeout(50)
    return True
