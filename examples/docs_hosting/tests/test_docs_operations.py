"""Periodic jobs, webhooks, deliveries, operators, and a worker that is killed."""

import asyncio
import hashlib
import hmac
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cryptography.fernet import Fernet
from fastapi.testclient import TestClient

from docs_hosting import store
from docs_hosting.database import app, fetch, make_sample
from docs_hosting.jobs import credential_reencrypt, encryptor, git_ref_audit, lifecycle_eval, purgatory_cleanup
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings
from fenceline.testing import TestedApp

if TYPE_CHECKING:
    from examples.conftest import Programs
    from examples.docs_hosting.tests.conftest import Hosting

pytestmark = pytest.mark.fenceline(app="docs_hosting.jobs:app")

HERE = Path(__file__).parents[1]


def ask(sql: str, *values: Any) -> list[Any]:
    return [tuple(row) for row in asyncio.run(fetch(sql, *values))]


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=HERE, env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_repository(folder: Path, *refs: str) -> str:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)

    folder.mkdir()
    git("init", "--quiet", "--initial-branch", "main")
    (folder / "dashboard.html").write_text("<title>{project}</title>{editions}")
    git("add", ".")
    git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "--quiet", "-m", "A template")
    for ref in refs:
        git("branch", ref)
    return str(folder)


@pytest.mark.parametrize("delivery", ["postgres", "arq", "inline"])
def test_it_runs_unchanged_on_every_delivery(
    delivery: str, hosting: "Hosting", programs: "Programs", request: pytest.FixtureRequest
) -> None:
    monkeypatch = request.getfixturevalue("monkeypatch")
    dsn = request.getfixturevalue("fenceline_dsn")
    monkeypatch.setenv("FENCELINE_DELIVERY", delivery)
    if delivery == "arq":
        monkeypatch.setenv("FENCELINE_REDIS_URL", request.getfixturevalue("redis_url"))
    if delivery != "inline":
        programs.start("fenceline", "worker", "docs_hosting.jobs:app", "--processes", "1")
    told = json.loads(run("docs_hosting.publish", "pipelines", "main", str(hosting.folder / "site"), FENCELINE_DSN=dsn))
    assert told["status"] == "succeeded"
    assert [phase["phase"] for phase in told["phases"]] == ["inventory", "tracking", "editions", "dashboard"]
    assert hosting.pointer("__main") == told["build"]
    assert f"__main: build {told['build']}" in (hosting.site / "__dashboard.html").read_text()


def test_after_kill_9_in_the_middle_the_next_worker_does_the_rest(
    hosting: "Hosting", programs: "Programs", fenceline_app: TestedApp
) -> None:
    """One edition is done, and the other waits for its lock, when the worker dies."""
    ask("insert into docs.edition (project_id, slug, git_ref) values ($1, 'v2.x', 'v2.1.0')", hosting.project)
    with app.sync.lock("edition", 1, tenant="lsst"):
        build, job = hosting.upload("v2.1.0")
        worker = programs.start("fenceline", "worker", "docs_hosting.jobs:app", "--processes", "1", "--lease", "30")

        def waits() -> bool:
            items = (hosting.shown(job)["progress"] or {}).get("items", {})
            return items.get("completed") == ["v2.1.0"] and items.get("in_progress") == ["v2.x"]

        programs.until(waits, "one edition is done")
        (active,) = app.sync.stats.active(labels={"project": "pipelines"}, phase="editions").items
        assert (active.id, active.phase) == (job, "editions")
        assert [(slow.id, slow.finished_at) for slow in app.sync.stats.slow(seconds=60).items] == [(job, None)]
        programs.signal(worker, signal.SIGKILL)
    fenceline_app.sync.advance(seconds=31)  # its lease is over: not by a busy machine while it was well
    programs.start("fenceline", "worker", "docs_hosting.jobs:app", "--processes", "1")
    programs.until(lambda: hosting.shown(job)["status"] == "succeeded", "another worker has done it")
    assert len(app.sync.jobs.handle(job).attempts()) == 2
    assert (hosting.pointer("v2.1.0"), hosting.pointer("v2.x")) == (build, build)
    assert ask("select count(*) from docs.edition_build_history where build_id = $1", build) == [(2,)], "each once"


def test_a_push_to_a_template_renders_its_projects(
    fenceline_app: TestedApp, hosting: "Hosting", fenceline_dsn: str
) -> None:
    template = make_repository(hosting.folder / "template")
    asyncio.run(make_sample(template=template))
    token = run("fenceline", "token", "create", "--role", "operator", "--tenant", "lsst", FENCELINE_DSN=fenceline_dsn)
    secret = "a secret that GitHub has too"  # noqa: S105 - of a test
    trigger = {
        "name": "templates", "kind": "dashboard_sync", "scheme": "github", "secret": secret,
        "map": {"template": "$.repository.clone_url"}, "idempotency_header": "X-GitHub-Delivery",
    }  # fmt: skip
    body = json.dumps({"ref": "refs/heads/main", "repository": {"clone_url": template}}).encode()
    signature = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    with TestClient(create_app(ServerSettings(hosts=("testserver",)), app)) as server:
        made = server.post("/v1/triggers", json=trigger, headers={"Authorization": f"Bearer {token.split()[-1]}"})
        assert made.status_code == 201, made.text
        headers = {"X-GitHub-Delivery": "1", "Content-Type": "application/json"}
        assert server.post("/v1/triggers/templates", content=body, headers=headers).status_code == 401
        headers["X-Hub-Signature-256"] = signature
        assert server.post("/v1/triggers/templates", content=body, headers=headers).status_code in {201, 202}
    fenceline_app.sync.drain()
    assert "<title>pipelines</title>" in (hosting.site / "__dashboard.html").read_text()


def test_the_cron_jobs_of_kubernetes_run_what_the_schedules_run(
    fenceline_app: TestedApp, hosting: "Hosting", fenceline_dsn: str, programs: "Programs"
) -> None:
    manifests = list(yaml.safe_load_all((HERE / "deploy/cronjobs.yaml").read_text()))
    worker = programs.start("fenceline", "worker", "docs_hosting.jobs:app", "--processes", "1")
    programs.until(lambda: len(app.sync.schedules.list()) == len(manifests), "the worker has told its schedules")
    known = {schedule.name: schedule.cron for schedule in app.sync.schedules.list()}
    jobs = []
    for manifest in manifests:
        container = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
        assert known[container["command"][-1]] == manifest["spec"]["schedule"]
        jobs.append(run(*container["command"], FENCELINE_DSN=fenceline_dsn).strip())
    for job in jobs:
        assert app.sync.jobs.handle(job).wait(programs.seconds_left()) == "succeeded"
        assert app.sync.jobs.get(job).max_attempts == 2
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(programs.seconds_left()) == 0


def test_what_is_old_goes_to_purgatory_and_then_for_good(hosting: "Hosting", fenceline_app: TestedApp) -> None:
    draft, _ = hosting.upload("tickets/DM-1")
    hosting.upload()
    fenceline_app.sync.drain()
    ask("update docs.edition set date_updated = now() - interval '40 days' where slug = 'DM-1'")
    ask("update docs.build set date_created = now() - interval '40 days' where id = $1", draft)
    job = lifecycle_eval.sync.enqueue()
    fenceline_app.sync.drain()
    assert job.result() == {"editions": 1, "builds": 1}
    place = hosting.folder / "purgatory/lsst" / str(draft)
    assert place.exists()
    assert not store.build_folder(draft).exists()
    os.utime(place, (0, 0))
    job = purgatory_cleanup.sync.enqueue()
    fenceline_app.sync.drain()
    assert job.result() == 1
    assert not place.exists()


def test_editions_of_deleted_refs_are_found(hosting: "Hosting", fenceline_app: TestedApp) -> None:
    asyncio.run(make_sample(repository=make_repository(hosting.folder / "repository", "there")))
    for ref in ("main", "there", "gone"):
        hosting.upload(ref)
    fenceline_app.sync.drain()
    deleted = "select slug from docs.edition where ref_gone and date_deleted is not null"
    for rule, found in ((False, []), (True, [("gone",)])):  # without the rule it is flagged, and stays
        ask("update docs.org set ref_deleted = $1", rule)
        ask("update docs.edition set ref_gone = false")
        job = git_ref_audit.sync.enqueue()
        fenceline_app.sync.drain()
        assert job.result() == 1
        assert ask("select slug from docs.edition where ref_gone") == [("gone",)]
        assert ask(deleted) == found
    shutil.rmtree(hosting.folder / "repository")
    job = git_ref_audit.sync.enqueue()
    fenceline_app.sync.drain()
    assert job.status() == "succeeded_with_errors"


def test_credentials_are_encrypted_under_the_newest_key(
    project: int, fenceline_app: TestedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = os.environ["DOCS_KEYS"]
    ask("insert into docs.organization_credentials values (1, 'cdn', $1)", encryptor().encrypt(b"hush"))
    new = Fernet.generate_key().decode()
    monkeypatch.setenv("DOCS_KEYS", f"{new},{old}")
    job = credential_reencrypt.sync.enqueue()
    fenceline_app.sync.drain()
    assert job.result() == 1
    ((token,),) = ask("select encrypted_credential from docs.organization_credentials")
    assert Fernet(new).decrypt(token) == b"hush"


def test_the_questions_of_operators(hosting: "Hosting", fenceline_app: TestedApp) -> None:
    """Active work and slow jobs are asked for while a worker runs, above."""
    stats = app.sync.stats
    (hosting.site / "kv/v2.x.json").mkdir(parents=True)  # nobody can write a pointer there
    for ref in ("main", "v2.1.0", "v2.1.1"):
        hosting.upload(ref)
    assert [(waits.kind, waits.queued) for waits in stats.backlog().items] == [("build_processing", 3)]
    fenceline_app.sync.drain()
    (rate,) = stats.errors(seconds=3600).items
    assert (rate.kind, rate.ended, rate.failed, rate.succeeded_with_errors) == ("build_processing", 3, 0, 2)
    spans = stats.throughput(seconds=3600).items
    assert {span.tenant: sum(each.succeeded for each in spans) for span in spans} == {"lsst": 1}
    assert stats.throughput("another", seconds=3600).items == []
    assert stats.active().items == []
