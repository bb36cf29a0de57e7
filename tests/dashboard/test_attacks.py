"""What others may try with a browser of ours: forged requests, names that point here, markup in every text."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import psycopg
import pytest
from playwright.sync_api import expect
from psycopg.types.json import Jsonb
from tests.dashboard.conftest import Enter
from tests.dashboard.queue import queue_of
from tests.dashboard.settling import count_requests, settle
from tests.dashboard.site import Site

pytestmark = pytest.mark.xdist_group("dashboard attacks")

MARKUP = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
PAGES = ("/", "/jobs", "/lanes", "/workers", "/schedules", "/webhooks", "/audit", "/tokens")


@contextmanager
def evil_page(content: str) -> Iterator[str]:
    """A page of somebody else's on another port: the same site to a browser, so its cookies come along."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_page_of_somebody_else_changes_and_reads_nothing(enter: Enter, site: Site) -> None:
    page = enter("fleet_operator", name="victim")
    page.goto("/")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    form = f"""<form method=post enctype=text/plain action="{site.url}/v1/admin/drain">
        <input name='{{"reason":"' value='"}}'></form>"""
    statuses: list[int] = []
    page.on("response", lambda answer: statuses.append(answer.status) if answer.url.startswith(site.url) else None)
    with evil_page(form) as url:
        page.goto(url)
        page.evaluate("document.forms[0].submit()")
        page.wait_for_url(f"{site.url}/v1/admin/drain")
        assert statuses[-1] in (403, 415)
        page.goto(url)
        answers = page.evaluate(
            """async (site) => {
                const send = (path, more) => fetch(site + path, {credentials: "include", ...more})
                    .then(() => "read", () => "refused");
                const json = {"Content-Type": "application/json"};
                return [await send("/v1/jobs"), await send("/v1/session"),
                    await send("/v1/admin/drain", {method: "POST", mode: "no-cors", body: "{}"}),
                    await send("/v1/admin/drain", {method: "POST", headers: json, body: "{}"})];
            }""",
            site.url,
        )
        assert answers == ["refused"] * 4
        assert 403 in statuses
        stream = page.evaluate(
            """(site) => new Promise((done) => {
                const source = new EventSource(site + "/v1/stream", {withCredentials: true});
                source.onopen = () => done("open");
                source.onerror = () => done("refused");
            })""",
            site.url,
        )
        assert stream == "refused"
    with queue_of(site) as queue:
        queue.enqueue("mail.send", {"to": "x"})  # not drained


def test_a_name_that_points_here_is_refused(enter: Enter, site: Site) -> None:
    page = enter()
    answer = page.goto(f"http://evil.example:{site.port}/")
    assert answer is not None
    assert answer.status == 403
    assert page.locator("main").count() == 0


def fill_with_markup(site: Site) -> list[str]:
    """Jobs with markup wherever text may stand; their ids."""
    with queue_of(site, name=MARKUP) as queue:
        job = queue.enqueue("mail.send", {"to": MARKUP}, labels={MARKUP[:60]: MARKUP}, key=MARKUP, needs_approval=True)
        done = queue.enqueue("mail.send", {"to": MARKUP}, labels={"x": MARKUP}, resource_lock=MARKUP)
        queue.until(done, "succeeded")
        queue.post("/v1/admin/drain", reason=MARKUP)
        queue.post("/v1/admin/resume", reason=MARKUP)
        queue.post("/v1/schedules", name="markup", kind="mail.send", cron="0 3 * * *", args={"to": MARKUP})
    with psycopg.connect(site.dsn, autocommit=True) as connection:
        worker = connection.execute(
            "select fenceline.register_worker(%s, 3600, p_version => %s)", (MARKUP, MARKUP)
        ).fetchone()
        assert worker is not None
        connection.execute("select fenceline.set_lane('hand', '{}')")
        made = connection.execute(
            "select job_id from fenceline.enqueue('work', '{}', '{\"lane\": \"hand\"}')"
        ).fetchone()
        assert made is not None
        claimed = connection.execute(
            "select job_id, attempt_id from fenceline.claim_jobs(%s, 'hand')", (worker[0],)
        ).fetchone()
        assert claimed is not None
        progress, line = {"message": MARKUP}, {"message": MARKUP, "fields": {"field": MARKUP}}
        error = {"type": MARKUP, "message": MARKUP, "traceback": MARKUP}
        for call, values in (
            ("set_progress(%s, %s, %s, %s)", (MARKUP, Jsonb(progress))),
            ("write_log(%s, %s, %s)", (Jsonb([line]),)),
            ("finish_attempt(%s, %s, 'failed_for_good', null, %s)", (Jsonb(error),)),
        ):
            connection.execute(f"select fenceline.{call}", (*claimed, *values))
        public = connection.execute("select fenceline.public_id(%s)", (claimed[0],)).fetchone()
        assert public is not None
    return [job, done, str(public[0])]


def test_markup_is_shown_as_text_everywhere(enter: Enter, site: Site) -> None:
    jobs = fill_with_markup(site)
    page = enter("platform_admin", name="reader")
    count_requests(page)
    violations: list[str] = []
    page.on("console", lambda line: violations.append(line.text) if "Content Security Policy" in line.text else None)
    page.on("dialog", lambda dialogue: violations.append(dialogue.message))
    for path in (*PAGES, *(f"/jobs/{job}" for job in jobs)):
        page.goto(path)
        expect(page.get_by_role("heading").first).to_be_visible()
        settle(page)
        assert page.evaluate("window.hacked") is None, path
        assert page.locator("img[src=x]").count() == 0, path
    expect(page.get_by_role("log")).to_contain_text(MARKUP)
    expect(page.get_by_role("region", name="Error", exact=True)).to_contain_text(MARKUP)
    expect(page.get_by_role("region", name="Phases and progress")).to_contain_text(MARKUP)
    page.goto("/workers")
    expect(page.get_by_role("region", name="Workers", exact=True)).to_contain_text(MARKUP)
    page.goto("/audit")
    expect(page.get_by_role("region", name="Actions")).to_contain_text(MARKUP)
    page.goto(f"/jobs/{jobs[0]}")
    expect(page.get_by_role("region", name="Args")).to_contain_text("hacked")
    expect(page.get_by_role("region", name="Facts")).to_contain_text(MARKUP)
    assert violations == []


def test_nothing_is_asked_of_another_host(enter: Enter, site: Site) -> None:
    page = enter("platform_admin")
    count_requests(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in PAGES:
        page.goto(path)
        expect(page.get_by_role("heading").first).to_be_visible()
        settle(page)
    assert asked
    assert [url for url in asked if not url.startswith((f"{site.url}/", "data:", "blob:"))] == []
