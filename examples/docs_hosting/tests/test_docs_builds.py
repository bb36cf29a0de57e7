"""Builds from their upload to what readers see."""

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from docs_hosting.database import app, fetch, list_editions, load_build
from docs_hosting.services import Superseded, tracking_slugs, update_edition
from fenceline.testing import TestedApp

if TYPE_CHECKING:
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


async def test_races_inside_and_outside_of_jobs_end_with_the_newest(hosting: "Hosting") -> None:
    """The service layer in twenty tasks of a program, for two editions at a time."""
    made = await fetch(
        "insert into docs.build (project_id, git_ref) select $1, 'main' from generate_series(1, 10) returning id",
        hosting.project,
    )
    await fetch("insert into docs.edition (project_id, slug, git_ref) values ($1, '__main', 'main')", hosting.project)
    (edition,) = await list_editions(hosting.project)
    builds = [await load_build(row["id"]) for row in made]

    async def show(number: int) -> bool:
        try:
            await update_edition(edition, builds[number])
        except Superseded:
            return False
        return True

    took = await asyncio.gather(*(show(number) for number in (3, 9, 1, 5, 0, 8, 2)))
    assert took[1], "the newest is never skipped"
    (after,) = await list_editions(hosting.project)
    assert after.build_id == hosting.pointer("__main") == builds[9].id
    history = [row["build_id"] for row in await fetch("select build_id from docs.edition_build_history order by date")]
    assert history == sorted(history)
    assert await app.system.locks() == []
    await app.close()


def test_an_admin_goes_back_and_renders_by_hand(hosting: "Hosting", fenceline_app: TestedApp) -> None:
    older, _ = hosting.upload()
    hosting.upload()
    fenceline_app.sync.drain()
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
