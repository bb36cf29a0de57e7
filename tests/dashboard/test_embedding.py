"""The example of docs/guides/dashboard.md, as it stands there: a page of another origin shows a job live."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.dashboard.conftest import new_context
from tests.dashboard.queue import Queue, queue_of
from tests.dashboard.site import ROOT, site_on, worker_of

pytestmark = pytest.mark.xdist_group("dashboard embedding")

#: What the page gets from its application; filled by the test.
ANSWERS: dict[str, bytes] = {}


class Application(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if self.path == "/my-import" else "text/html")
        self.end_headers()
        self.wfile.write(ANSWERS.get(self.path, b""))

    def log_message(self, *_args: object) -> None: ...


@pytest.fixture
def application() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Application)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_page_of_the_application_shows_a_job_live(
    browser: Browser, site_database: str, application: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    found = re.search(r"```html\n(.*?)```", (ROOT / "docs/guides/dashboard.md").read_text(), re.DOTALL)
    assert found is not None
    with (
        site_on(site_database, origins=(application,)) as site,
        worker_of(site_database),
        site.client(site.token("producer", name="app")) as client,
        queue_of(site) as operator,
        new_context(browser) as context,
    ):
        operator.lane("imports", enabled=False)  # until the page is open
        args = {"source": "s3://shop/a.csv", "gate": str(gate)}
        job = Queue(client).enqueue("catalogue.import", args, lane="imports")
        code = client.post("/v1/session/codes").json()["code"]
        ANSWERS["/"] = found[1].replace("https://jobs.example.com", site.url).encode()
        ANSWERS["/my-import"] = json.dumps({"job": job, "code": code}).encode()
        page = context.new_page()
        page.goto(f"{application}/")
        expect(page.locator("#text")).to_have_text("queued")
        operator.lane("imports", enabled=True)
        expect(page.locator("#text")).to_have_text("images")
        gate.touch()
        expect(page.locator("#text")).to_have_text("succeeded_with_errors")
        assert page.evaluate("bar.value") == 1
