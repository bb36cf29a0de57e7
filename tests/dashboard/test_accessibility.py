"""Every page, in light and in dark: nothing serious that axe-core finds, and nothing cut off at a phone's width."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.dashboard.conftest import new_context, sign_in
from tests.dashboard.queue import Queue, queue_of
from tests.dashboard.settling import becomes, count_requests, settle
from tests.dashboard.site import Site

pytestmark = pytest.mark.xdist_group("dashboard accessibility")

AXE = Path(__file__).with_name("vendor") / "axe.min.js"
PAGES = ("/", "/jobs", "/lanes", "/workers", "/schedules", "/webhooks", "/audit", "/tokens")


@pytest.fixture(scope="module")
def jobs(site: Site) -> list[str]:
    """Something on every page, and jobs of every sort."""
    with queue_of(site, name="customer") as queue:
        done = queue.enqueue("catalogue.import", {"source": "s3://shop/a.csv"}, labels={"project": "spring"})
        shipped = queue.enqueue("order.ship", {"order": "A-1"})
        failed = queue.enqueue("payment.capture", {"order": "A-1", "fails": 9}, max_attempts=1)
        held = queue.enqueue("mail.send", {"to": "all"}, needs_approval=True)
        queue.enqueue("mail.send", {"to": "all"}, after=[held])
        fill_pages(queue)
        queue.until(done, "succeeded_with_errors")
        queue.until(shipped, "succeeded")
        queue.until(failed, "failed")
    return [done, shipped, failed, held]


def fill_pages(queue: Queue) -> None:
    queue.post("/v1/schedules", name="nightly-report", kind="report.sales", cron="0 3 * * *", args={"month": "may"})
    queue.post("/v1/hooks", url="https://shop.example/fenceline", statuses=["failed"])
    queue.post("/v1/triggers", name="bank", kind="payment.capture")
    queue.post("/v1/admin/drain", reason="a move of the data centre")
    queue.post("/v1/admin/resume")


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    with new_context(browser, site.url, color_scheme="light") as context:
        sign_in(context, site.token("platform_admin", name="ann"))
        page = context.new_page()
        count_requests(page)
        yield page


def serious(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def in_both_themes(page: Page) -> list[str]:
    wrong = serious(page)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(244, 246, 247)"
    wrong += serious(page)
    page.emulate_media(color_scheme="light")
    return wrong


@pytest.mark.timeout(1800)  # axe looks at everything on every page, twice
def test_axe_finds_nothing_serious(page: Page, jobs: list[str]) -> None:
    wrong = {}
    for path in (*PAGES, *(f"/jobs/{job}" for job in jobs)):
        page.goto(path)
        expect(page.locator("main .panel").first).to_be_visible()
        settle(page)
        wrong[path] = in_both_themes(page)
    assert json.dumps({path: found for path, found in wrong.items() if found}, indent=1) == "{}"


def test_nor_on_the_page_to_sign_in(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/login")
    expect(page.get_by_label("Token")).to_be_visible()
    assert in_both_themes(page) == []


def test_dialogues_too(page: Page, jobs: list[str]) -> None:
    page.goto(f"/jobs/{jobs[3]}")
    page.locator(".actions").get_by_role("button", name="Approve").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_label("Reason")).to_be_visible()
    assert in_both_themes(page) == []


def test_nothing_is_wider_than_the_window(page: Page, jobs: list[str]) -> None:
    for path in (*PAGES, *(f"/jobs/{job}" for job in jobs[:3])):
        page.goto(path)
        expect(page.locator("main .panel").first).to_be_visible()
        settle(page)
        for width in (390, 768, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            # Charts follow a moment later.
            fits = "document.documentElement.scrollWidth <= innerWidth"
            becomes(page, fits, f"{path} is not wider than {width}")


def test_the_first_load_is_small(browser: Browser, site: Site, jobs: list[str]) -> None:
    with new_context(browser, site.url) as context:
        sign_in(context, site.token("platform_admin", name="ann"))
        page = context.new_page()
        page.goto("/")
        expect(page.get_by_role("img", name="Throughput, last hour")).to_be_visible()
        expect(page.locator(".chart canvas")).to_have_count(3)
        sizes = page.evaluate(
            "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
            ".filter(each => !each.name.includes('/v1/')).map(each => each.encodedBodySize)"
        )
    assert len(sizes) > 10
    assert sum(sizes) < 150_000, sizes
