"""The dashboard in a real browser: its first load, a page of a million jobs, 500 events a second on the live list."""

import asyncio
import os
import shutil
import time
from statistics import median
from typing import Any

import asyncpg
from playwright.async_api import Page, async_playwright

from benchmarks import jobs
from benchmarks.client_enqueue import dsn_of
from benchmarks.measure import Result, Size
from benchmarks.streams import start_server
from fenceline.database import calls
from fenceline.model.secret import new_token

EVENTS_PER_SECOND = 500
TICK_SECONDS = 0.1
FIRST_LOAD_KB, FILTERED_MS, LONGEST_TASK_MS, HEAP_PERCENT = 150, 300, 100, 120

#: Ended jobs of ten kinds, one in fifty failed, spread over the month before.
MANY_SQL = """
with made as (
  insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args)
  select fenceline.id_at(clock_timestamp() - make_interval(secs => 2592000.0 * n / $1)) | (n & 4194303), 0, 3,
         'kind' || n % 10, 'default', 'default', '{}'
  from generate_series(1, $1) n returning id
)
insert into fenceline.history (job_id, ended_at, token, claimed_at, number, final, outcome)
select id, fenceline.id_time(id) + interval '1 second', 1, fenceline.id_time(id), 1, true,
       case when (id & 4194303) % 50 = 0 then 'failed' else 'succeeded' end
from made
"""
#: From the click on a status to the rows of the answer.
CLICK = """async (name) => {
  const button = [...document.querySelectorAll(".chips button")].find((each) => each.textContent.trim() === name);
  const first = document.querySelector("tr[data-job]")?.dataset.job;
  const started = performance.now();
  button.click();
  while (document.querySelector("tr[data-job]")?.dataset.job === first) await new Promise(requestAnimationFrame);
  return performance.now() - started;
}"""
WATCH_TASKS = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) window.longest = Math.max(window.longest, each.duration);
}).observe({type: "longtask"});
"""
SIZES = """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .filter((each) => !each.name.includes("/v1/")).reduce((sum, each) => sum + each.encodedBodySize, 0)"""


async def flood(connection: asyncpg.Connection, worker_id: int, events: int) -> float:
    """So many changes of statuses, at the pace; how many a second they really were."""
    started = time.perf_counter()
    each = int(EVENTS_PER_SECOND * TICK_SECONDS / 2)
    for tick in range(events // (2 * each)):
        await connection.fetch(jobs.ENQUEUE_SQL, ["{}"] * each)
        claimed = await connection.fetch(jobs.CLAIM_SQL, worker_id, each)
        await connection.fetch(jobs.FINISH_SQL, [row[0] for row in claimed], [row[1] for row in claimed])
        await asyncio.sleep(max(0.0, started + (tick + 1) * TICK_SECONDS - time.perf_counter()))
    return events / (time.perf_counter() - started)


async def heap(page: Page) -> float:
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    used: dict[str, Any] = await session.send("Runtime.getHeapUsage")
    await session.detach()
    return float(used["usedSize"])


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    many, events = (50_000, 5_000) if size.quick else (1_000_000, 50_000)
    await connection.execute("set statement_timeout = 0")
    await connection.execute(MANY_SQL.replace("$1", str(many)))
    await connection.execute("vacuum analyze")
    worker_id = await connection.fetchval(jobs.WORKER_SQL)
    token, token_hash = new_token()
    call = calls.tokens.create_token(
        token_hash, role="platform_admin", tenant=None, name="bench", expires_at=None, actor=None
    )
    await connection.fetch(call.sql, *call.parameters)
    port = 18321 + os.getpid() % 10_000
    server = await start_server(await dsn_of(connection), port)
    try:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            context = await browser.new_context(base_url=f"http://127.0.0.1:{port}")
            answer = await context.request.post("/v1/session", data={"token": token})
            assert answer.ok
            page = await context.new_page()
            await page.add_init_script(WATCH_TASKS)
            await page.goto("/")
            await page.locator(".chart canvas").nth(2).wait_for()
            first_load = float(await page.evaluate(SIZES)) / 1000
            filtered = await _filter(page)
            longest, heap_percent, pace = await _watch(page, connection, worker_id, events)
            await browser.close()
    finally:
        server.terminate()
        await server.wait()
    return [
        Result(measurement="first load, compressed", unit="KB", ours=first_load, target=FIRST_LOAD_KB, bound="at most"),
        Result(
            measurement=f"a filtered page of {many:,} jobs is shown, median",
            unit="ms",
            ours=median(filtered),
            target=FILTERED_MS,
            bound="at most",
            note=f"slowest {max(filtered):,.0f} ms",
        ),
        Result(
            measurement=f"longest task of the page, {events:,} events",
            unit="ms",
            ours=longest,
            target=LONGEST_TASK_MS,
            bound="at most",
            note=f"{pace:,.0f} events/s; tasks under 50 ms are not counted",
        ),
        Result(
            measurement="heap afterwards, of what it was before",
            unit="%",
            ours=heap_percent,
            target=HEAP_PERCENT,
            bound="at most",
        ),
    ]


async def _filter(page: Page) -> list[float]:
    found = []
    await page.goto("/jobs?kind=kind0")
    await page.locator("tr[data-job]").nth(49).wait_for()
    for _ in range(5):
        found.append(float(await page.evaluate(CLICK, "failed")))
        found.append(float(await page.evaluate(CLICK, "failed")))
    return found


async def _watch(page: Page, connection: asyncpg.Connection, worker_id: int, events: int) -> tuple[float, float, float]:
    await page.goto("/jobs")
    await page.locator("tr[data-job]").nth(49).wait_for()
    await page.get_by_text("Live", exact=True).wait_for()
    await flood(connection, worker_id, 1000)  # so that everything the page ever loads is there
    before = await heap(page)
    await page.evaluate("window.longest = 0")
    pace = await flood(connection, worker_id, events)
    longest = float(await page.evaluate("window.longest"))
    return longest, 100 * await heap(page) / before, pace
