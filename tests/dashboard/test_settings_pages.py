"""What an operator changes, in a real browser: lanes, the system, schedules, webhooks, tokens."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.dashboard.conftest import Enter
from tests.dashboard.queue import Queue, queue_of, wait_for
from tests.dashboard.settling import hold_first_answer
from tests.dashboard.site import Site
from tests.support.patience import eventually_blocking

pytestmark = pytest.mark.xdist_group("dashboard settings")


@pytest.fixture(scope="module")
def queue(site: Site) -> Iterator[Queue]:
    with queue_of(site, name="customer") as queue:
        yield queue


def lane_panel(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def test_drain_and_resume_a_lane(enter: Enter, queue: Queue) -> None:
    queue.lane("gate", slots=2)
    page = enter()
    page.goto("/lanes")
    panel = lane_panel(page, "gate")
    panel.get_by_role("button", name="Drain").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(panel).to_contain_text("drained")
    assert queue.lane("gate")["enabled"] is False
    job = queue.enqueue("mail.send", {"to": "gate"}, lane="gate")
    expect(panel.get_by_role("link", name="1", exact=True)).to_be_visible()
    assert queue.job(job)["status"] == "queued"
    panel.get_by_role("button", name="Resume").click()
    expect(panel).to_contain_text("active")
    queue.until(job, "succeeded")


def test_editing_slots_changes_how_many_run(enter: Enter, queue: Queue) -> None:
    queue.lane("narrow", slots=1)
    jobs = [queue.enqueue("long.wait", lane="narrow") for _ in range(3)]
    page = enter()
    page.goto("/lanes")
    panel = lane_panel(page, "narrow")
    expect(panel).to_contain_text("1 of 1")
    panel.get_by_role("button", name="Slots of narrow").click()
    panel.get_by_label("Slots of narrow").fill("3")
    panel.get_by_role("button", name="Save").click()
    expect(panel).to_contain_text("3 of 3")
    wait_for(lambda: queue.lane("narrow")["in_use"], lambda used: used == 3)
    for job in jobs:
        queue.post(f"/v1/jobs/{job}/cancel", force=True)


def test_the_system_is_drained_after_a_question(enter: Enter, queue: Queue) -> None:
    page = enter()
    page.goto("/")
    page.get_by_role("button", name="Drain the system").click()
    dialogue = page.get_by_role("dialog")
    expect(dialogue).to_contain_text("refused until you resume")
    dialogue.get_by_label("Reason").fill("the database moves")
    dialogue.get_by_role("button", name="Drain").click()
    expect(page.get_by_text("The system drains")).to_be_visible()
    page.get_by_role("button", name="Resume the system").click()
    expect(page.get_by_text("The system drains")).to_have_count(0)
    page.goto("/audit?action=system.drain")
    expect(page.get_by_role("region", name="Actions")).to_contain_text("the database moves")
    queue.enqueue("mail.send", {"to": "again"})


def test_a_kind_is_moved_to_another_lane(enter: Enter, queue: Queue) -> None:
    queue.lane("old", kinds=["report.sales"])
    queue.lane("new", slots=2)
    page = enter()
    page.goto("/lanes")
    lane_panel(page, "old").get_by_role("button", name="report.sales").click()
    dialogue = page.get_by_role("dialog")
    dialogue.get_by_label("To lane").select_option("new")
    dialogue.get_by_role("button", name="Move").click()
    expect(lane_panel(page, "new")).to_contain_text("report.sales")
    assert (queue.lane("new")["kinds"], queue.lane("old")["kinds"]) == (["report.sales"], [])
    assert queue.job(queue.enqueue("report.sales", {"month": "may"}))["lane"] == "new"


def test_a_schedule_is_paused_resumed_and_run_now(enter: Enter, queue: Queue) -> None:
    queue.post("/v1/schedules", name="nightly", kind="mail.send", cron="0 3 * * *", args={"to": "night"})
    page = enter("operator")
    page.goto("/schedules")
    row = page.get_by_role("row", name=re.compile("nightly"))
    expect(row).to_contain_text(re.compile(r"in \d+ (h|min)"))
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name="Resume").click()
    expect(row.get_by_role("button", name="Pause")).to_be_visible()
    row.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("region", name="Args")).to_contain_text("night")


def test_a_change_shows_although_an_older_answer_was_under_way(enter: Enter, queue: Queue) -> None:
    queue.post("/v1/schedules", name="weekly", kind="mail.send", cron="0 3 * * 1", args={"to": "week"})
    page = enter("operator")
    page.clock.install(time=0)
    page.goto("/schedules")
    row = page.get_by_role("row", name=re.compile("weekly"))
    expect(row.get_by_role("button", name="Pause")).to_be_visible()
    held = hold_first_answer(page, "/v1/schedules$")
    with page.expect_request(re.compile("/v1/schedules$")):
        page.clock.pause_at(3600)  # it is time to look again
    route, old = held()
    row.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("weekly is paused")).to_be_visible()
    route.fulfill(response=old)

    def shows() -> bool:
        page.clock.run_for(1)  # not as long as it takes until the page looks again by itself
        return row.get_by_role("button", name="Resume").is_visible()

    eventually_blocking(shows, "the page with the change")


def test_a_webhook_is_made_and_deleted(enter: Enter) -> None:
    page = enter("platform_admin")
    page.goto("/webhooks")
    page.get_by_role("button", name="New webhook").click()
    dialogue = page.get_by_role("dialog")
    dialogue.get_by_label("URL").fill("https://erp.shop.example/jobs")
    dialogue.get_by_label("Only failures").check()
    dialogue.get_by_role("button", name="Create").click()
    expect(page.get_by_text("shown once")).to_be_visible()
    row = page.get_by_role("row", name=re.compile("erp.shop.example"))
    expect(row).to_contain_text("failed")
    row.get_by_role("button", name="Delete").click()
    dialogue.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)


def test_a_token_is_shown_once_and_revoked(enter: Enter, site: Site) -> None:
    page = enter("platform_admin")
    page.goto("/tokens")
    page.get_by_role("button", name="New token").click()
    dialogue = page.get_by_role("dialog")
    dialogue.get_by_label("Name").fill("wall-screen")
    dialogue.get_by_label("Role").select_option("viewer")
    dialogue.get_by_role("button", name="Create").click()
    token = page.locator(".notice code").inner_text()
    with site.client(token) as client:
        assert client.get("/v1/jobs").status_code == 200
        row = page.get_by_role("row", name=re.compile("wall-screen"))
        row.get_by_role("button", name="Revoke").click()
        dialogue.get_by_role("button", name="Revoke").click()
        expect(row).to_contain_text("revoked")
        wait_for(lambda: client.get("/v1/jobs").status_code, lambda status: status == 401)
    page.reload()
    expect(row).to_contain_text("revoked")
    assert token not in page.content()
