"""The other pages in a real browser: signing in, lists, bulk verbs, who sees what, a server that goes away."""

import re
from collections.abc import Iterator

import psycopg
import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect
from tests.dashboard.conftest import Enter
from tests.dashboard.queue import Queue, queue_of
from tests.dashboard.settling import answered, becomes
from tests.dashboard.site import Site

pytestmark = pytest.mark.xdist_group("dashboard pages")


@pytest.fixture(scope="module")
def queue(site: Site) -> Iterator[Queue]:
    with queue_of(site, name="customer") as queue:
        yield queue


def rows(page: Page) -> list[str]:
    found: list[str] = page.locator("tr[data-job]").evaluate_all("rows => rows.map(row => row.dataset.job)")
    return found


def test_signing_in_with_a_token_and_out_again(site: Site, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Token").fill("fl_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("unknown")
    page.get_by_label("Token").fill(site.token("operator", name="ann"))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.locator(".who")).to_contain_text("ann")
    [cookie] = context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert context.cookies() == []


def test_a_link_signs_in_once(site: Site, context: BrowserContext) -> None:
    with site.client(site.token("operator", name="ben")) as client:
        code = client.post("/v1/session/codes").json()["code"]
    page = context.new_page()
    page.goto(f"/login#{code}")
    expect(page.locator(".who")).to_contain_text("ben")
    assert code not in page.url
    context.clear_cookies()
    again = context.new_page()
    again.goto(f"/login#{code}")
    expect(again.get_by_role("alert")).to_contain_text("used up")


def test_filters_are_in_the_address_and_survive_a_reload(enter: Enter, queue: Queue) -> None:
    wanted = queue.enqueue("mail.send", {"to": "x"}, labels={"project": "moon"})
    queue.enqueue("mail.send", {"to": "y"}, labels={"project": "sun"})
    queue.until(wanted, "succeeded")
    page = enter()
    page.goto("/jobs")
    page.get_by_label("Label").fill("project:moon")
    page.keyboard.press("Enter")
    expect(page.locator("tr[data-job]")).to_have_count(1)
    page.get_by_role("group", name="Status").get_by_role("button", name="succeeded", exact=True).click()
    expect(page).to_have_url(re.compile(r"label=project%3Amoon&status=succeeded"))
    expect(page.locator("tr[data-job]")).to_have_count(1)
    page.reload()
    expect(page.locator("tr[data-job]")).to_have_count(1)
    assert rows(page) == [wanted]
    expect(page.get_by_label("Label")).to_have_value("project:moon")
    page.get_by_role("group", name="Status").get_by_role("button", name="failed", exact=True).click()
    page.get_by_role("group", name="Status").get_by_role("button", name="succeeded", exact=True).click()
    expect(page.get_by_text("No job matches")).to_be_visible()


def test_an_answer_that_was_overtaken_is_not_shown(enter: Enter, queue: Queue) -> None:
    queue.until(queue.enqueue("mail.send", {"to": "x"}, labels={"project": "late"}), "succeeded")
    page = enter()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile(r"/v1/jobs\?.*status=succeeded"), hold)
    page.goto("/jobs?label=project:late&status=succeeded")
    status = page.get_by_role("group", name="Status")
    expect(status.get_by_role("button", name="succeeded", exact=True)).to_have_attribute("aria-pressed", "true")
    status.get_by_role("button", name="failed", exact=True).click()
    status.get_by_role("button", name="succeeded", exact=True).click()
    expect(page.get_by_text("No job matches")).to_be_visible()
    assert len(held) == 2
    for route in held:
        with answered(page, route):
            route.continue_()
    assert rows(page) == []
    expect(page.get_by_text("No job matches")).to_be_visible()


def test_the_list_is_live_and_does_not_jump(enter: Enter, queue: Queue) -> None:
    queue.lane("slow", enabled=False)
    first = queue.enqueue("mail.send", {"to": "a"}, lane="slow")
    page = enter()
    page.goto("/jobs?lane=slow")
    row = page.locator(f"tr[data-job='{first}']")
    expect(row).to_contain_text("queued")
    second = queue.enqueue("mail.send", {"to": "b"}, lane="slow")
    expect(page.get_by_text("1 new job")).to_be_visible()
    assert rows(page) == [first]
    queue.lane("slow", enabled=True)
    expect(row).to_contain_text("succeeded")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tr[data-job]")).to_have_count(2)
    assert rows(page) == [second, first]


def test_pages_are_stable_while_jobs_come(enter: Enter, queue: Queue) -> None:
    queue.lane("many", enabled=False)
    jobs = [queue.enqueue("mail.send", {"to": str(number)}, lane="many") for number in range(60)]
    page = enter()
    page.goto("/jobs?lane=many")
    expect(page.locator("tr[data-job]")).to_have_count(50)
    queue.enqueue("mail.send", {"to": "new"}, lane="many")
    page.get_by_role("link", name="Older").click()
    expect(page.locator("tr[data-job]")).to_have_count(10)
    assert rows(page) == jobs[9::-1]
    page.get_by_role("button", name="Newer").click()
    expect(page.locator("tr[data-job]")).to_have_count(50)


def test_bulk_retry_with_a_preview(enter: Enter, queue: Queue) -> None:
    failed = [queue.enqueue("payment.capture", {"order": str(n), "fails": 9}, max_attempts=1) for n in range(3)]
    for job in failed:
        queue.until(job, "failed")
    running = queue.enqueue("long.wait", labels={"set": "bulk"})
    page = enter()
    page.goto("/jobs?kind=payment.capture&kind=long.wait")
    expect(page.locator("tr[data-job]")).to_have_count(4)
    page.get_by_label("select all on this page").check()
    page.get_by_role("group", name="Selected jobs").get_by_role("button", name="Retry").click()
    dialogue = page.get_by_role("dialog")
    expect(dialogue).to_contain_text("Retry 3 jobs?")
    expect(dialogue).to_contain_text("left as they are: 1 (wrong status)")
    dialogue.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("Retry: 3 changed, 1 refused")).to_be_visible()
    expect(page.locator("tr[data-job]")).to_have_count(7)
    queue.post(f"/v1/jobs/{running}/cancel", force=True)


def test_who_enqueued_and_the_text_of_the_error_filter_the_list_the_news_and_the_bulk_verb(
    enter: Enter, site: Site, queue: Queue
) -> None:
    with queue_of(site, "operator", name="shop, main") as shop:
        failed = [shop.enqueue("payment.capture", {"order": "s", "fails": 9}, max_attempts=1) for _ in range(51)]
        other = queue.enqueue("payment.capture", {"order": "o", "fails": 9}, max_attempts=1)
        for job in (*failed, other):
            queue.until(job, "failed")
        page = enter()
        page.goto("/jobs")
        page.get_by_label("Created by").fill("shop, main")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"created_by=shop%2C\+main$"))
        page.get_by_label("Text in error").fill("BANK does not")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"error=BANK\+does\+not"))
        expect(page.locator("tr[data-job]")).to_have_count(50)
        assert rows(page) == failed[:0:-1]
        page.get_by_label("select all on this page").check()
        page.get_by_role("button", name="Select all that match the filter").click()
        page.get_by_role("group", name="Selected jobs").get_by_role("button", name="Retry").click()
        expect(page.get_by_role("dialog")).to_contain_text("Retry 51 jobs?")
        page.get_by_role("dialog").get_by_role("button", name="Back").click()
        # Of the two that fail now, one is shop's.
        for sender in (queue, shop):
            queue.until(sender.enqueue("payment.capture", {"order": "n", "fails": 9}, max_attempts=1), "failed")
        expect(page.get_by_text("1 new job", exact=True)).to_be_visible()


def test_keys(enter: Enter, queue: Queue) -> None:
    queue.enqueue("mail.send", {"to": "keys"})
    page = enter()
    page.goto("/jobs")
    expect(page.locator("tr[data-job]").first).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Kind")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("tr[data-job]").first).to_have_class("current ")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next, previous")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    chosen = rows(page)[0]
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(chosen))


def test_an_id_in_the_field_of_kinds_opens_the_job(enter: Enter, queue: Queue) -> None:
    job = queue.enqueue("mail.send", {"to": "found"})
    page = enter()
    page.goto("/jobs")
    page.keyboard.press("/")
    page.get_by_label("Kind or id").fill(job.lower())
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Args")).to_contain_text("found")


def test_a_server_that_delivers_webhooks_is_no_worker_that_is_up(enter: Enter) -> None:
    page = enter()

    def all_workers_gone(route: Route) -> None:
        fleet = route.fetch().json()
        gone = [worker | {"status": "offline"} for worker in fleet["workers"]]
        server = gone[0] | {"id": 0, "name": "server@here", "lanes": ["webhooks"], "status": "online"}
        route.fulfill(json=fleet | {"workers": [*gone, server], "runners": []})

    page.route(re.compile("workers/status"), all_workers_gone)
    page.goto("/")
    expect(page.get_by_role("alert")).to_contain_text("No worker or runner is up")
    expect(page.get_by_role("link", name="workers up")).to_contain_text(re.compile(r"^0 / [1-9]"))


def test_overview_shows_what_matters_and_approves(enter: Enter, queue: Queue) -> None:
    queue.until(queue.enqueue("payment.capture", {"order": "z", "fails": 9}, max_attempts=1), "failed")
    job = queue.enqueue("report.sales", {"month": "may"}, needs_approval=True)
    page = enter("platform_admin", name="boss")
    page.goto("/")
    expect(page.get_by_role("region", name="What fails most")).to_contain_text("the bank does not answer")
    expect(page.get_by_role("region", name="Doctor")).to_contain_text("fsync")  # of the tests' database, on purpose
    expect(page.get_by_role("img", name=re.compile("Throughput, last hour"))).to_be_visible()
    page.get_by_role("region", name="Waits for approval").get_by_role("button", name="Approve").first.click()
    expect(page.get_by_text("Approved report.sales")).to_be_visible()
    queue.until(job, "succeeded_with_errors")


def test_overview_shows_whose_work_there_is(enter: Enter, site: Site, queue: Queue) -> None:
    queue.lane("later", enabled=False)
    waiting = [queue.enqueue("catalogue.copy", lane="later") for _ in range(3)]
    running = queue.enqueue("catalogue.import", {"source": "s3://shop/b.csv", "pause": 3600})
    queue.until(queue.enqueue("mail.send", {"to": "y"}), "succeeded")
    with queue_of(site, "operator", tenant="other") as other:
        other.until(other.enqueue("mail.send", {"to": "z"}), "succeeded")
    page = enter()
    page.goto("/")
    kind = page.get_by_role("region", name="Backlog by kind").get_by_role("row", name=re.compile("catalogue.copy"))
    expect(kind.get_by_role("cell").nth(1)).to_have_text("3")
    tenants = page.get_by_role("region", name="Tenants").get_by_role("row")
    expect(tenants.filter(has_text="other").get_by_role("cell").nth(1)).to_have_text("1")
    at_work = page.get_by_role("region", name="At work").get_by_role("row", name=re.compile("catalogue.import"))
    expect(at_work).to_contain_text("images")
    at_work.get_by_role("link").click()
    expect(page).to_have_url(re.compile("kind=catalogue.import.*phase=images"))
    expect(page.get_by_label("Phase")).to_have_value("images")
    expect(page.locator("tr[data-job]")).to_have_count(1)
    assert rows(page) == [running]
    for job in (*waiting, running):
        queue.post(f"/v1/jobs/{job}/cancel", force=True)


def test_a_chart_whose_script_comes_late_shows_what_came_before(enter: Enter, site: Site, queue: Queue) -> None:
    for job in [queue.enqueue("mail.send", {"to": "chart"}) for _ in range(20)]:
        queue.until(job, "succeeded")
    queue.until(queue.enqueue("payment.capture", {"order": "chart", "fails": 9}, max_attempts=1), "failed")
    with psycopg.connect(site.dsn, autocommit=True) as connection:
        minute = "date_trunc('minute', clock_timestamp()) - interval '10 minutes'"
        connection.execute(f"update fenceline.history set ended_at = {minute} where outcome = 'succeeded'")
        # What failed, here and in earlier tests, is thinly spread, so that it does not set the scale.
        spread = "ended_at - random() * interval '40 minutes'"
        connection.execute(f"update fenceline.history set ended_at = {spread} where outcome <> 'succeeded'")
    page = enter()
    held: dict[str, Route] = {}
    for late in ("uplot.js", "throughput"):
        page.route(re.compile(late), lambda route: held.update({route.request.url.split("?")[0].split("/")[-1]: route}))
    page.goto("/")
    chart = page.get_by_role("img", name=re.compile("Throughput, last hour"))
    expect(chart).to_be_visible()
    page.route(re.compile("workers/status"), lambda _route: None)  # nothing draws the page anew
    held["throughput"].continue_()
    expect(page.get_by_role("region", name="What fails most")).to_be_visible()
    held["uplot.js"].continue_()
    expect(chart.locator("canvas")).to_be_visible()
    # The line is not all on the ground: something is drawn in the colour of success well above it.
    becomes(
        page,
        """() => {
            const canvas = document.querySelector("[aria-label^='Throughput'] canvas");
            const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let drawn = 0;
            for (let at = 0; at < width * Math.floor(height * 0.7) * 4; at += 4) {
                if (data[at + 1] > data[at] + 40 && data[at + 1] > data[at + 2] + 20 && data[at + 3] > 200) drawn += 1;
            }
            return drawn > 5;
        }""",
        "a line above the ground",
    )


def test_the_page_finds_its_way_back_after_a_restart(enter: Enter, site: Site, queue: Queue) -> None:
    page = enter()
    page.goto("/jobs?kind=mail.send")
    live = page.locator(".live")
    expect(live).to_have_text("Live")
    audit = page.context.new_page()  # a page that asks now and then, and has no stream
    audit.goto("/audit")
    expect(audit.get_by_role("region", name="Actions")).to_be_visible()
    expect(audit.locator(".live")).to_have_count(0)
    site.stop_server()
    try:
        expect(live).to_have_text("Reconnecting")
        expect(audit.locator(".live")).to_have_text("Reconnecting")
    finally:
        site.start_server()
    expect(live).to_have_text("Live")
    expect(audit.locator(".live")).to_have_count(0)
    queue.enqueue("mail.send", {"to": "after"})
    expect(page.get_by_text("1 new job")).to_be_visible()


def test_a_viewer_sees_no_buttons_and_the_api_refuses(enter: Enter, queue: Queue) -> None:
    job = queue.enqueue("mail.send", {"to": "x"}, needs_approval=True)
    page = enter("viewer")
    page.goto(f"/jobs/{job}")
    expect(page.locator(".head .status").first).to_contain_text("awaiting approval")
    expect(page.locator(".actions button")).to_have_count(0)
    page.goto("/jobs")
    expect(page.locator("tr[data-job]").first).to_be_visible()
    expect(page.get_by_role("checkbox")).to_have_count(0)
    page.goto("/lanes")
    expect(page.get_by_role("region", name="default", exact=True)).to_be_visible()
    expect(page.locator("main button")).to_have_count(0)
    names = page.get_by_role("navigation").get_by_role("link").all_inner_texts()
    assert names == ["Overview", "Jobs", "Lanes", "Workers"]
    page.goto("/tokens")
    expect(page.get_by_text("not for your role")).to_be_visible()
    # Not only hidden: the same session, with everything that a page of ours can send.
    answers = page.evaluate(
        """async (job) => {
            const { csrf } = await (await fetch("/v1/session")).json();
            const send = async (method, path, body) => (await fetch(path, {
                method, headers: {"X-Fenceline-CSRF": csrf, "Content-Type": "application/json"},
                body: body && JSON.stringify(body),
            })).status;
            return [await send("POST", `/v1/jobs/${job}/approve`, {}), await send("POST", `/v1/jobs/${job}/cancel`, {}),
                await send("PATCH", "/v1/admin/workers/lanes/default", {slots: 1}),
                await send("POST", "/v1/admin/drain", {}),
                await send("POST", "/v1/jobs/bulk", {action: "approve", ids: [job]}), await send("GET", "/v1/tokens")];
        }""",
        job,
    )
    assert answers == [403] * 6
    assert queue.job(job)["status"] == "awaiting_approval"


def test_tenants_see_their_own_jobs_only(enter: Enter, site: Site) -> None:
    with queue_of(site, "operator", tenant="acme", name="a") as acme, queue_of(site, "operator", tenant="beta") as beta:
        ours = acme.enqueue("mail.send", {"to": "acme"}, labels={"secret": "of-acme"})
        theirs = beta.enqueue("mail.send", {"to": "beta"}, labels={"secret": "of-beta"})
        page = enter("operator", tenant="acme")
        page.goto("/jobs")
        expect(page.locator("tr[data-job]")).to_have_count(1)
        assert rows(page) == [ours]
        # Live too: a job of theirs does not even count as a new one.
        beta.enqueue("mail.send", {"to": "beta"})
        acme.enqueue("mail.send", {"to": "acme"})
        expect(page.get_by_text("1 new job")).to_be_visible()
        page.goto("/jobs?tenant=beta&label=secret:of-beta")
        expect(page.get_by_text("No job matches")).to_be_visible()
        page.goto(f"/jobs/{theirs}")
        expect(page.get_by_role("heading", name="No such job")).to_be_visible()
        assert "of-beta" not in page.content()
