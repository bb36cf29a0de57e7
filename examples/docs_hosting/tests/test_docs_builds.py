"""Builds from their upload to what readers see."""

import asyncio
import json
from contextvars import Context
from typing import TYPE_CHECKING, Any

import pytest

from docs_hosting.database import app, fetch, list_editions, load_build
from docs_hosting.services import Superseded, tracking_slugs, update_edition
from fenceline.testing import TestedApp

if TYPE_CHECKING:
    from examples.conftest import Programs
    from examples.docs_hosting.tests.conftest import Hosting

pytestmark = pytest.mark.fenceline(app="docs_hosting.jobs:app")


def test_a_build_goes_through_its_phases(hosting: "Hosting", fenceline_app: TestedApp) -> None:
    build, job = hosting.upload("v2.1.0")
    assert fenceline_app.sync.drain() == 1
    record = hosting.shown(job)
    assert (record["status"], record["tenant"]) == ("succeeded", "lsst")
    assert record["labels"] == {"project": "pipelines", "build": str(build)}
    phases = {phase["phase"]: phase["progress"] for phase in record["phases"]}
    assert list(phases) == ["inventory", "tracking", "editions", "dashboard"]
    assert phases["inventory"]["message"] == "Cataloged 1 objects"
    assert sorted(phases["editions"]["items"]["completed"]) == ["v2.1.0", "v2.x"]
    assert hosting.pointer("v2.x") == build
    site = hosting.site
    assert f"v2.x: build {build}" in (site / "__dashboard.html").read_text()
    assert json.loads((site / "__switcher.json").read_text()) == ["v2.1.0", "v2.x"]
    assert json.loads((site / "__editions/v2.x.json").read_text()) == {"slug": "v2.x", "build": build}


def test_one_edition_that_fails_leaves_the_others(hosting: "Hosting", fenceline_app: TestedApp) -> None:
    (hosting.site / "kv/v2.x.json").mkdir(parents=True)  # nobody can write a pointer there
    _, job = hosting.upload("v2.1.0")
    fenceline_app.sync.drain()
    record = hosting.shown(job)
    assert record["status"] == "succeeded_with_errors"
    assert [error["item"] for error in record["errors"]] == ["v2.x"]
    editions = record["phases"][2]["progress"]["items"]
    assert editions["completed"] == ["v2.1.0"]
    assert "IsADirectoryError" in str(editions["failed"])


def test_an_older_build_never_replaces_a_newer_one(hosting: "Hosting", fenceline_app: TestedApp) -> None:
    (_, first), (newer, second) = hosting.upload(), hosting.upload()
    app.sync.jobs.handle(second).reprioritise(9)
    fenceline_app.sync.drain()
    assert (hosting.shown(first)["status"], hosting.shown(second)["status"]) == ("succeeded", "succeeded")
    assert hosting.shown(first)["phases"][2]["progress"]["items"]["skipped"] == [
        {"item": "__main", "reason": f"superseded by build {newer}"}
    ]
    assert hosting.pointer("__main") == newer


async def test_races_inside_and_outside_of_jobs_end_with_the_newest(hosting: "Hosting", programs: "Programs") -> None:
    """Four jobs of a worker and four tasks of this program want the lock of one edition, all at the same moment."""
    await fetch("insert into docs.edition (project_id, slug, git_ref) values ($1, '__main', 'main')", hosting.project)
    (edition,) = await list_editions(hosting.project)
    insert = "insert into docs.build (project_id, git_ref) values ($1, 'main') returning id"

    async def show(build_id: int) -> bool:
        try:
            await update_edition(edition, await load_build(build_id))
        except Superseded:
            return False
        return True

    def items(job: str) -> dict[str, Any]:
        found: dict[str, Any] = (hosting.shown(job)["progress"] or {}).get("items", {})
        return found

    async with app.lock("edition", edition.id, tenant="lsst"):
        builds, jobs, outside = [], [], []
        for _ in range(4):
            (row,) = await fetch(insert, hosting.project)
            # In a context of its own: else it would count as a part of this block, which has the lock.
            outside.append(asyncio.create_task(show(row["id"]), context=Context()))
            build, job = await asyncio.to_thread(hosting.upload)
            builds += [row["id"], build]
            jobs.append(job)
        programs.start("fenceline", "worker", "docs_hosting.jobs:app", "--processes", "1")
        waiting = [["__main"]] * len(jobs)
        await asyncio.to_thread(
            programs.until, lambda: [items(job).get("in_progress") for job in jobs] == waiting, "all of them wait"
        )
    await asyncio.gather(*outside)
    ended = [await app.jobs.handle(job).wait(programs.seconds_left()) for job in jobs]
    assert ended == ["succeeded"] * len(jobs)
    phases = [hosting.shown(job)["phases"][2]["progress"]["items"] for job in jobs]
    assert phases[-1]["completed"] == ["__main"], "the newest is never skipped"
    assert all(len(found["completed"]) + len(found["skipped"]) == 1 for found in phases)
    (after,) = await list_editions(hosting.project)
    assert after.build_id == hosting.pointer("__main") == builds[-1]
    history = [row["build_id"] for row in await fetch("select build_id from docs.edition_build_history order by date")]
    assert history == sorted(history)
    assert await app.system.locks() == []
    await app.close()


def test_an_admin_goes_back_and_renders_by_hand(hosting: "Hosting", fenceline_app: TestedApp) -> None:
    older, _ = hosting.upload()
    hosting.upload()
    fenceline_app.sync.drain()
    assert hosting.client.patch("/editions/1", params={"build": 99}).status_code == 404
    answer = hosting.client.patch("/editions/1", params={"build": older})
    fenceline_app.sync.drain()
    assert hosting.shown(answer.json()["job"])["status"] == "succeeded"
    assert hosting.pointer("__main") == older
    page = hosting.site / "__dashboard.html"
    page.unlink()
    assert hosting.client.post(f"/projects/{hosting.project}/dashboard").status_code == 200
    assert f"build {older}" in page.read_text()


def test_a_job_is_forgotten_after_seven_days(hosting: "Hosting", fenceline_app: TestedApp) -> None:
    _, job = hosting.upload()
    fenceline_app.sync.drain()
    fenceline_app.sync.advance(days=6)
    assert hosting.client.get(f"/queue/jobs/{job}").status_code == 200
    fenceline_app.sync.advance(days=2)
    app.sync.system.prune()  # as workers do once a minute
    assert hosting.client.get(f"/queue/jobs/{job}").status_code == 404


def test_what_refs_are_called() -> None:
    assert tracking_slugs("main") == ["__main"]
    assert tracking_slugs("tickets/DM-12345") == ["DM-12345"]
    assert tracking_slugs("v12.0.3") == ["v12.0.3", "v12.x"]
    assert tracking_slugs("u/ann/new page") == ["u-ann-new-page"]
