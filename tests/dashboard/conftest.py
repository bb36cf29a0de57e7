"""The fixtures of the server's tests for a browser's requests, and a real browser with a whole site for the pages.

Where there is no Chromium the tests of pages are skipped, and the summary of the run says so; with
`FENCELINE_REQUIRE_TOOLS` (in CI) they fail.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.conftest import create_database, drop_database
from tests.dashboard.site import Site, find_chromium, site_on, worker_of
from tests.server.conftest import anonymous, api, as_role, queue_app, settings
from tests.support.patience import seconds_left

from fenceline.testing.databases import dsn_of

__all__ = ["anonymous", "api", "as_role", "queue_app", "settings"]

#: `page = enter("operator", tenant="acme")`: a browser of its own, signed in.
Enter = Callable[..., Page]


@pytest.fixture(autouse=True)
def patient() -> None:
    """What a page is to show may take as long as the test."""
    expect.set_options(timeout=seconds_left() * 1000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Gone with the module: while its driver lives, no test of this process can have an event loop of its own."""
    program = find_chromium()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"],
            timeout=seconds_left() * 1000,
        )
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def site_database(server: str, administrator: psycopg.Connection, template: str) -> Iterator[str]:
    name = f"fenceline_test_{uuid4().hex[:12]}"
    create_database(administrator, name, template=template)
    yield dsn_of(server, name)
    drop_database(administrator, name)


@pytest.fixture(scope="module")
def site(site_database: str) -> Iterator[Site]:
    """One server and one worker for all tests of a module."""
    with site_on(site_database) as site, worker_of(site_database):
        yield site


@pytest.fixture
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    """A browser without a session. It goes nowhere but to the site."""
    with new_context(browser, site.url) as context:
        yield context


@pytest.fixture
def enter(browser: Browser, site: Site) -> Iterator[Enter]:
    with ExitStack() as contexts:

        def make(role: str = "fleet_operator", **options: str) -> Page:
            context = contexts.enter_context(new_context(browser, site.url))
            sign_in(context, site.token(role, **options))
            return context.new_page()

        yield make


@contextmanager
def new_context(browser: Browser, url: str | None = None, **options: Any) -> Iterator[BrowserContext]:
    """What is done in it may take as long as the test. It ends with the block: a server waits for its open streams."""
    with browser.new_context(base_url=url, viewport={"width": 1280, "height": 900}, **options) as context:
        context.set_default_timeout(seconds_left() * 1000)
        yield context


def sign_in(context: BrowserContext, token: str) -> None:
    answer = context.request.post("/v1/session", data={"token": token})
    assert answer.ok, answer.text()
