"""When a page has everything that it asked for: seen from inside, because its stream stays open."""

from playwright.sync_api import Page
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
