"""`make screenshots`: every page with the data of a busy shop, light and dark, wide and on a phone, to docs/images/."""

import base64
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.dashboard.conftest import sign_in
from tests.dashboard.queue import Queue, queue_of
from tests.dashboard.site import ROOT, Site, apart, find_chromium, site_on, worker_of

from fenceline.database.embedded import EmbeddedPostgres
from fenceline.testing.databases import migrate_database

IMAGES = ROOT / "docs" / "images"
SIZES = {"wide": (1440, 900), "phone": (390, 844)}

#: An hour of a shop's jobs: kind, lane, how many, how long they take, how many of a hundred fail.
HOUR = """
with sort(kind, lane, many, seconds, failing) as (values
  ('order.ship', 'default', 2400, 0.4, 1), ('payment.capture', 'default', 1500, 0.9, 4),
  ('mail.send', 'default', 3200, 0.2, 0), ('catalogue.import', 'interactive', 60, 42, 6),
  ('report.sales', 'maintenance', 25, 18, 0)
), made as (
  select s.*, n,
         clock_timestamp() - make_interval(secs => 4000 * (n + random()) / s.many * (0.94 + 0.12 * random())) as at
  from sort s cross join lateral generate_series(0, s.many - 1) n
), job as (
  insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args, labels, created_by)
  select fenceline.id_at(m.at) | (nextval('fenceline.job_id') & 4194303), 0, 3, m.kind, m.lane, 'default', '{}',
         case when n % 7 = 0 then jsonb_build_object('store', (array['Lyon', 'Porto', 'Graz', 'Turku'])[1 + n % 4]) end,
         (array['checkout', 'checkout', 'back-office'])[1 + n % 3]
  from made m returning id, kind
)
insert into fenceline.history (job_id, ended_at, token, claimed_at, started_at, worker_id, attempt_id, number, final,
                               outcome, error)
select j.id, least(t.at + make_interval(secs => s.seconds * (0.5 + random())), clock_timestamp()), 1, t.at, t.at,
       (select min(w.id) from fenceline.worker w), gen_random_uuid(), 1, true,
       case when f.fails then 'failed'
            when j.kind = 'report.sales' and random() < 0.2 then 'succeeded_with_errors' else 'succeeded' end,
       case when f.fails then (array[
         '{"type": "ConnectionError", "message": "the bank does not answer: connection reset by peer"}'::jsonb,
         '{"type": "ConnectionError", "message": "the bank does not answer: connection reset by peer"}',
         '{"type": "CardRefused", "message": "card ending in 4711 was refused by the issuer"}',
         '{"type": "TimeoutError", "message": "no answer from parcel.example within 30 s"}'
       ])[1 + floor(random() * 4)::int] end
from job j join sort s on s.kind = j.kind
cross join lateral (select least(clock_timestamp(), fenceline.id_time(j.id)
                             + make_interval(secs => 0.02 + 0.4 * random() ^ 4 * s.seconds)) as at) t
cross join lateral (select (hashint8(j.id) & 1023) % 100 < s.failing as fails) f
"""


def fill(site: Site, queue: Queue) -> dict[str, str]:
    """A past hour, and what goes on now; the jobs that have pages of their own here."""
    queue.lane("imports", slots=4)
    queue.lane("interactive", kinds=["catalogue.import"])
    queue.lane("maintenance", kinds=["report.sales"])
    queue.lane("reindex", enabled=False, slots=2)
    with psycopg.connect(site.dsn, autocommit=True) as connection:
        connection.execute(HOUR)
        connection.execute("analyze")
    queue.post("/v1/schedules", name="nightly-report", kind="report.sales", cron="0 3 * * *", args={"month": "may"})
    queue.post(
        "/v1/schedules", name="stock-levels", kind="catalogue.import", every=300, args={"source": "s3://shop/stock.csv"}
    )
    queue.post(
        "/v1/schedules",
        name="newsletter",
        kind="mail.send",
        cron="30 9 * * 1",
        timezone="Europe/Vienna",
        args={"to": "all"},
    )
    for path, body in (
        ("/v1/hooks", {"url": "https://ops.shop.example/fenceline", "statuses": ["failed", "cancelled"]}),
        ("/v1/hooks", {"url": "https://erp.shop.example/jobs", "kinds": ["order.ship"]}),
        ("/v1/triggers", {"name": "bank-callback", "kind": "payment.capture"}),
        ("/v1/tokens", {"name": "checkout", "role": "producer"}),
        ("/v1/tokens", {"name": "back-office", "role": "operator"}),
        ("/v1/tokens", {"name": "wall-screen", "role": "viewer"}),
        ("/v1/admin/drain", {"reason": "the data centre moves"}),
        ("/v1/admin/resume", {}),
    ):
        queue.post(path, **body)
    queue.post("/v1/schedules/newsletter/run")
    labels = {"store": "Lyon", "project": "spring"}
    failed = queue.enqueue("payment.capture", {"order": "A-4711", "fails": 9}, labels=labels)
    jobs = {
        "job-failed": failed,
        "job": queue.enqueue(
            "catalogue.import",
            {"source": "s3://shop/catalogue.csv", "pause": 120.0},
            lane="interactive",
            labels=labels,
            priority=10,
            snapshot={"currency": "EUR", "prices": "net"},
        ),
    }
    for month in ("march", "april", "may"):
        queue.enqueue("report.sales", {"month": month, "seconds": 90}, lane="maintenance")
    for number in range(6):
        queue.enqueue("catalogue.import", {"source": f"s3://shop/part-{number}.csv", "pause": 60.0}, lane="interactive")
    for number in range(14):
        queue.enqueue("mail.send", {"to": f"customer-{number}"}, lane="reindex")
    for number in range(3):
        held = queue.enqueue(
            "order.ship", {"order": f"B-{number}"}, needs_approval=True, labels={"value": "over 5,000"}
        )
    queue.enqueue("mail.send", {"to": "ann@shop.example"}, after=[held])
    queue.enqueue("report.sales", {"month": "june"}, run_at="2030-07-01T03:00:00Z")
    queue.until(failed, "failed")
    with psycopg.connect(site.dsn, autocommit=True) as connection:  # a traceback that is not about this machine
        connection.execute(
            "update fenceline.history set error = replace(error::text, %s, '/srv/shop')::jsonb where error is not null",
            (str(ROOT / "tests/dashboard"),),
        )
    return jobs


@contextlib.contextmanager
def shop() -> Iterator[Site]:
    with (
        tempfile.TemporaryDirectory(prefix="fenceline-shots-", dir="/tmp") as folder,
        EmbeddedPostgres(Path(folder)) as dsn,
    ):
        apart(migrate_database(dsn))
        with site_on(dsn) as site, worker_of(dsn, "--processes", "2"):
            yield site


def take(page: Page, name: str, converter: Page) -> None:
    """As WebP, which the browser itself makes: a third of the size of PNG."""
    page.wait_for_timeout(900)
    picture = base64.b64encode(page.screenshot()).decode()
    encoded: str = converter.evaluate(
        """async (picture) => {
            const image = new Image();
            image.src = `data:image/png;base64,${picture}`;
            await image.decode();
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [image.width, image.height];
            canvas.getContext("2d").drawImage(image, 0, 0);
            return canvas.toDataURL("image/webp", 0.82).split(",")[1];
        }""",
        picture,
    )
    (IMAGES / f"{name}.webp").write_bytes(base64.b64decode(encoded))


def take_all(browser: Browser, site: Site, queue: Queue, jobs: dict[str, str], token: str) -> None:
    runner = queue.post("/v1/runners", name="gpu-1", lanes=["imports"], labels={"gpu": "a100"})["id"]
    paths = {
        "overview": "/", "jobs": "/jobs", **{name: f"/jobs/{job}" for name, job in jobs.items()}, "lanes": "/lanes",
        "workers": "/workers", "schedules": "/schedules", "webhooks": "/webhooks", "audit": "/audit",
        "tokens": "/tokens",
    }  # fmt: skip
    converter = browser.new_page()
    for theme in ("light", "dark"):
        for size, (width, height) in SIZES.items():
            context = browser.new_context(
                base_url=site.url, viewport={"width": width, "height": height}, color_scheme=theme,
                device_scale_factor=1 if size == "wide" else 2,
            )  # fmt: skip
            page = context.new_page()
            page.goto("/login")
            expect(page.get_by_label("Token")).to_be_visible()
            take(page, f"login-{theme}-{size}", converter)
            sign_in(context, token)
            for name, path in paths.items():
                queue.post(f"/v1/runners/{runner}/heartbeat", attempts=[])  # it is up
                page.goto(path)
                expect(page.locator("main .panel, main .tiles").first).to_be_visible()
                if name == "overview":
                    expect(page.locator(".chart canvas")).to_have_count(3)
                take(page, f"{name}-{theme}-{size}", converter)
            context.close()


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with shop() as site, queue_of(site, name="checkout") as queue, sync_playwright() as playwright:
        jobs = fill(site, queue)
        token = site.token("platform_admin", name="ann")
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        take_all(browser, site, queue, jobs, token)
        browser.close()


if __name__ == "__main__":
    main()
