"""A job in a real browser, beside a real worker: watched live, and acted on."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.dashboard.conftest import Enter
from tests.dashboard.queue import Queue, queue_of
from tests.dashboard.settling import answered, hold_first_answer
from tests.dashboard.site import Site

pytestmark = pytest.mark.xdist_group("dashboard job")


@pytest.fixture(scope="module")
def queue(site: Site) -> Iterator[Queue]:
    with queue_of(site, name="customer") as queue:
        yield queue


def open_job(page: Page, job: str) -> None:
    page.goto(f"/jobs/{job}")
    expect(page.get_by_text(job).first).to_be_visible()


def status(page: Page, text: str) -> None:
    expect(page.locator(".head .status").first).to_contain_text(text)


def confirm(page: Page, verb: str, reason: str = "") -> None:
    page.locator(".actions").get_by_role("button", name=verb, exact=True).click()
    dialogue = page.get_by_role("dialog")
    if reason:
        dialogue.get_by_label("Reason").fill(reason)
    dialogue.get_by_role("button", name=verb).click()
    expect(dialogue).to_have_count(0)


def test_from_queued_to_done_with_its_log(enter: Enter, queue: Queue, tmp_path: Path) -> None:
    queue.lane("imports", enabled=False)
    page, gate = enter(), tmp_path / "gate"
    job = queue.enqueue("catalogue.import", {"source": "s3://shop/catalogue.csv", "gate": str(gate)}, lane="imports")
    open_job(page, job)
    status(page, "queued")
    expect(page.get_by_label("Why it is where it is")).to_contain_text("imports")
    expect(page.get_by_label("Why it is where it is")).to_contain_text("drained")
    queue.lane("imports", enabled=True)
    status(page, "running")
    log = page.get_by_role("log")
    expect(log).to_contain_text("reading source=s3://shop/catalogue.csv")
    expect(page.get_by_role("meter", name="progress of inventory")).to_be_visible()
    gate.touch()
    expect(log).to_contain_text("prices of 240 rows written")
    status(page, "succeeded with errors")  # one of its items failed
    assert queue.job(job)["status"] == "succeeded_with_errors"
    expect(page.get_by_role("region", name="Result", exact=True)).to_contain_text('"rows": 240')
    # Searched, filtered, and downloaded whole.
    page.get_by_label("Search the log").fill("120 rows")
    expect(log.locator("div")).to_have_count(1)
    page.get_by_label("Search the log").fill("")
    page.get_by_label("Lowest level").select_option("warning")
    expect(log.locator("div")).to_have_count(1)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.path().read_text().count("\n") == 8


def test_an_answer_from_before_the_end_does_not_hide_the_end(enter: Enter, queue: Queue) -> None:
    queue.lane("later", enabled=False)
    job = queue.enqueue("mail.send", {"to": "x"}, lane="later")
    page = enter()
    held = hold_first_answer(page, rf"/v1/jobs/{job}$")
    page.goto(f"/jobs/{job}")
    status(page, "queued")  # from its stream
    route, old = held()
    queue.lane("later", enabled=True)
    status(page, "succeeded")
    with answered(page, route):
        route.fulfill(response=old)
    status(page, "succeeded")


def test_its_log_is_paused_and_goes_on_even_after_the_end(enter: Enter, queue: Queue, tmp_path: Path) -> None:
    page, gate = enter(), tmp_path / "gate"
    job = queue.enqueue("catalogue.import", {"source": "s3://shop/slow.csv", "gate": str(gate)})
    open_job(page, job)
    log = page.get_by_role("log")
    expect(log).to_contain_text("reading")
    expect(page.get_by_role("list", name="Failed")).to_have_text("detail the file is cut off")
    expect(page.get_by_role("list", name="In progress")).to_have_text("back")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Go on (0 new)")).to_be_visible()
    gate.touch()
    status(page, "succeeded with errors")
    expect(log.locator("div")).to_have_count(1)
    page.get_by_role("button", name="Go on (7 new)").click()
    expect(log).to_contain_text("prices of 0 rows written")
    expect(log.locator("div")).to_have_count(8)
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)


def test_steps_items_and_attempts_are_shown(enter: Enter, queue: Queue) -> None:
    page = enter()
    job = queue.enqueue("order.ship", {"order": "A-1"})
    queue.until(job, "succeeded")
    open_job(page, job)
    expect(page.get_by_role("region", name="Steps")).to_contain_text("reserve")
    expect(page.get_by_role("region", name="Steps")).to_contain_text("label")
    expect(page.get_by_role("region", name="Attempts")).to_contain_text("succeeded")
    failing = queue.enqueue("payment.capture", {"order": "A-1", "fails": 9}, max_attempts=2)
    queue.until(failing, "failed")
    open_job(page, failing)
    expect(page.get_by_role("region", name="Error")).to_contain_text("the bank does not answer")
    expect(page.get_by_role("region", name="Error")).to_contain_text("Traceback")
    attempts = page.get_by_role("region", name="Attempts").get_by_role("listitem")
    expect(attempts).to_have_count(2)
    attempts.first.locator("summary").click()
    expect(attempts.first).to_contain_text("in payment_capture")
    expect(page.get_by_role("region", name="What happened")).to_contain_text("ended: failed")


def test_who_holds_the_lock_and_what_became_of_it(enter: Enter, queue: Queue) -> None:
    page = enter()
    holder = queue.enqueue("stock.count", {"shelf": "B-12", "seconds": 3600})
    queue.until(holder, "running")
    open_job(page, holder)
    locks = page.get_by_role("region", name="Locks")
    expect(locks).to_contain_text("shelf:B-12")
    waiter = queue.enqueue("stock.count", {"shelf": "B-12"})
    open_job(page, waiter)
    expect(page.get_by_label("Why it is where it is")).to_contain_text("waits for the lock")
    locks.get_by_role("link", name=holder).click()
    expect(page).to_have_url(re.compile(holder))
    confirm(page, "Force cancel")
    open_job(page, waiter)
    status(page, "succeeded")
    graph = page.get_by_role("group", name="Graph")
    graph.get_by_role("link", name="mail.send").click()
    expect(page.get_by_role("region", name="Args")).to_contain_text("buyer")
    expect(graph.get_by_role("link", name="stock.count")).to_be_visible()


def test_its_checkpoint_its_plan_and_late_writes_that_were_refused(enter: Enter, queue: Queue) -> None:
    page = enter()
    plan = {"shop": "Lyon", "prices": "net"}
    job = queue.enqueue("catalogue.copy", {"rows": 72_000}, snapshot=plan)
    queue.until(job, "running")
    open_job(page, job)
    expect(page.get_by_role("region", name="Checkpoint")).to_contain_text('"row":')
    panel = page.get_by_role("region", name="Plan")
    expect(panel).to_contain_text(queue.job(job)["snapshot_hash"])
    panel.get_by_text("Snapshot", exact=True).click()
    expect(panel).to_contain_text('"shop": "Lyon"')
    # Its handler is stopped, and wants to keep where it was.
    confirm(page, "Force cancel")
    status(page, "cancelled")
    expect(page.get_by_role("region", name="Attempts")).to_contain_text("Refused, because too late: a checkpoint")
    expect(page.get_by_role("region", name="What happened")).to_contain_text("refused a checkpoint")


def test_a_running_job_is_cancelled(enter: Enter, queue: Queue) -> None:
    page = enter()
    job = queue.enqueue("long.wait")
    open_job(page, job)
    status(page, "running")
    confirm(page, "Cancel", "not needed")
    status(page, "cancelled")
    found = queue.until(job, "cancelled")
    assert "not needed" in str(found["error"])
    # And one whose handler is not asked.
    stubborn = queue.enqueue("long.wait")
    open_job(page, stubborn)
    status(page, "running")
    confirm(page, "Force cancel")
    status(page, "cancelled")


def test_approve_and_reject(enter: Enter, queue: Queue) -> None:
    page = enter(name="boss")
    job = queue.enqueue("mail.send", {"to": "all"}, needs_approval=True)
    open_job(page, job)
    status(page, "awaiting approval")
    confirm(page, "Approve")
    status(page, "succeeded")
    other = queue.enqueue("mail.send", {"to": "all"}, needs_approval=True)
    open_job(page, other)
    confirm(page, "Reject", "too early")
    status(page, "cancelled")
    expect(page.get_by_role("main")).to_contain_text("too early")


def test_retry_makes_a_new_job_and_shows_it(enter: Enter, queue: Queue) -> None:
    page = enter()
    job = queue.enqueue("mail.send", {"to": "ann"})
    queue.until(job, "succeeded")
    open_job(page, job)
    confirm(page, "Retry")
    page.wait_for_url(lambda url: "/jobs/" in url and job not in url)
    status(page, "succeeded")
    expect(page.get_by_role("region", name="Facts")).to_contain_text(job)


def test_run_now_and_reprioritise(enter: Enter, queue: Queue) -> None:
    page = enter()
    queue.lane("later", enabled=False)
    job = queue.enqueue("mail.send", {"to": "bob"}, run_at="2040-01-01T00:00:00Z", lane="later")
    open_job(page, job)
    status(page, "scheduled")
    page.locator(".actions").get_by_role("button", name="Reprioritise").click()
    page.get_by_role("dialog").get_by_label("Priority").fill("7")
    page.get_by_role("dialog").get_by_role("button", name="Reprioritise").click()
    expect(page.get_by_role("region", name="Facts").locator("div", has_text="Priority").last).to_have_text("Priority7")
    confirm(page, "Run now")
    status(page, "queued")
    assert queue.job(job)["priority"] == 7
    queue.lane("later", enabled=True)
    status(page, "succeeded")


def test_a_signal_is_sent_to_a_job_that_waits_for_one(enter: Enter, queue: Queue) -> None:
    page = enter("operator")
    job = queue.enqueue("order.return", {"order": "A-7"})
    open_job(page, job)
    status(page, "waiting")
    expect(page.get_by_label("Why it is where it is")).to_contain_text("parcel-came-back")
    page.locator(".actions").get_by_role("button", name="Send signal").click()
    dialogue = page.get_by_role("dialog")
    expect(dialogue.get_by_label("Signal")).to_have_value("parcel-came-back")
    dialogue.get_by_label("Payload").fill("not json")
    dialogue.get_by_role("button", name="Send signal").click()
    expect(dialogue.get_by_role("alert")).to_contain_text("not JSON")
    dialogue.get_by_label("Payload").fill('{"refund": 49}')
    dialogue.get_by_role("button", name="Send signal").click()
    expect(dialogue).to_have_count(0)
    status(page, "succeeded")
    assert queue.job(job)["result"] == {"order": "A-7", "refund": 49}
    expect(page.locator(".actions").get_by_role("button", name="Send signal")).to_have_count(0)
    # Whoever only looks is not offered it.
    other = queue.enqueue("order.return", {"order": "A-8"})
    queue.until(other, "waiting")
    watching = enter("viewer")
    open_job(watching, other)
    status(watching, "waiting")
    expect(watching.locator(".actions").get_by_role("button")).to_have_count(0)
    queue.post(f"/v1/jobs/{other}/cancel")


def test_a_missing_job_and_a_foreign_one_look_alike(enter: Enter, queue: Queue) -> None:
    job = queue.enqueue("mail.send", {"to": "ann"})
    page = enter("operator", tenant="other")
    for id_ in (job, "01HQ-3KBR-T5GN-8WX", "nonsense"):
        page.goto(f"/jobs/{id_}")
        expect(page.get_by_role("heading", name="No such job")).to_be_visible()
