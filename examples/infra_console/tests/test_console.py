"""The console end to end: a process of its own, runners over HTTP only, real resources on this machine."""

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import httpx
import psutil
import pytest
from moto.sts.models import sts_backends
from stand_ins.clouds import AZURE_CLIENT, GCP_ACCOUNT
from stand_ins.stack import Person, Stack, eventually, free_port, seconds_left

pytestmark = pytest.mark.xdist_group("infra console")

CONTINUING = "continuing from the kept state"


def kill_tree(pid: int) -> None:
    """A process and all that it has started."""
    runner = psutil.Process(pid)
    for process in [*runner.children(recursive=True), runner]:
        process.kill()


def test_a_spec_is_planned_deployed_and_destroyed(stack: Stack, ann: Person) -> None:
    port, folder = free_port(), stack.folder / "site/site/web"
    ann.save_spec("web", port)
    planned = ann.do("spec", "web", "plan")
    assert planned["result"] == {"changes": ["network", "database", "argocd", "cluster"], "monthly_cost": 88.0}
    assert not folder.exists()  # a plan changes nothing
    assert ann.row("spec", "web")["plan_hash"] == planned["snapshot_hash"]

    deploying = ann.press("spec", "web", "deploy")
    seen = Watch(stack.url, ann.client.headers["Authorization"], deploying)
    deployed = ann.ended(deploying)
    assert (deployed["status"], deployed["worker"], deployed["created_by"]) == ("succeeded", "site-1", "ann")
    assert deployed["requires_hash"] == planned["snapshot_hash"]
    shown = ann.client.get(f"/queue/v1/jobs/{deploying}", params={"fields": "snapshot"}).json()["snapshot"]
    assert (shown["name"], shown["apps"]) == ("web", ["shop"])
    components = ann.components("web")
    assert components["cluster"] == {"endpoint": f"http://127.0.0.1:{port}"}
    cluster = components["argocd"]["url"]
    assert eventually(lambda: httpx.get(cluster, timeout=60), "the cluster answers").json() == ["shop"]
    # A browser's session has seen every line, in order, before the end.
    assert [message for event, message in seen.all() if event == "log"] == ann.log(deploying)
    assert [status for event, status in seen.all() if event == "status"][-1] == "succeeded"
    changes = ann.client.get(f"/queue/v1/jobs/{deploying}/attempts").json()["items"]
    assert [(attempt["worker"], attempt["outcome"]) for attempt in changes] == [("site-1", "succeeded")]

    ann.do("spec", "web", "destroy")
    assert not folder.exists()
    assert ann.components("web") == {}
    with pytest.raises(httpx.ConnectError):
        httpx.get(cluster)


def test_a_changed_spec_is_not_deployed(stack: Stack, ann: Person) -> None:
    """Neither when it changed before the deploy was queued, nor when it did while that waited for a runner."""
    config = ann.save_spec("moved", free_port())
    assert ann.client.post("/api/spec/moved/deploy").status_code == 409  # there is no plan
    ann.do("spec", "moved", "plan")
    ann.save_spec("moved", config["cluster"]["port"], apps=["other"])
    before = ann.press("spec", "moved", "deploy")
    refused = ann.ended(before)
    lane = "/queue/v1/admin/workers/lanes/infra"
    with stack.client(stack.token("fleet_operator", "olga")) as fleet:
        fleet.patch(lane, json={"enabled": False}).raise_for_status()
        ann.save_spec("moved", config["cluster"]["port"])
        waiting = ann.press("spec", "moved", "deploy")
        ann.save_spec("moved", config["cluster"]["port"], apps=["other"])
        fleet.patch(lane, json={"enabled": True}).raise_for_status()
    for job in (refused, ann.ended(waiting)):
        assert (job["status"], job["error"]["code"]) == ("failed", "plan_hash_mismatch")
        assert ann.log(job["id"]) == []
    assert not (stack.folder / "site/site/moved").exists()


def test_a_deploy_goes_on_where_a_killed_runner_left_it(stack: Stack, ann: Person) -> None:
    """By itself when a runner's process dies; as a new job, by somebody's retry, when its whole machine is lost."""
    licence = stack.folder / "licence"
    ann.save_spec("kept", free_port(), region="edge", cluster={"licence": str(licence)})
    with stack.client(stack.token("fleet_operator", "olga")) as fleet:
        lane = fleet.get("/queue/v1/admin/workers/lanes/infra").json()
        assert lane["offline_timeout_seconds"] == 60
        first = stack.start_runner("edge-1", region="edge")
        ann.do("spec", "kept", "plan")
        lost = ann.press("spec", "kept", "deploy")
        eventually(lambda: "database: changed" in ann.log(lost), "the database is there")
        os.kill(first.pid, signal.SIGKILL)
        second = stack.start_runner("edge-2", region="edge")
        eventually(lambda: CONTINUING in ann.log(lost), "another runner goes on")
        kill_tree(second.pid)
        stack.end_lease("edge-2")
        failed = ann.ended(lost)
        assert (failed["status"], failed["error"]["code"]) == ("failed", "lost")
        assert ann.row("spec", "kept")["deployments"] == 0

    licence.touch()
    stack.start_runner("edge-3", region="edge")
    again = ann.client.post(f"/queue/v1/jobs/{lost}/retry").raise_for_status().json()
    assert (again["retry_of"], again["snapshot_hash"]) == (lost, failed["snapshot_hash"])
    done = ann.ended(again["id"])
    assert (done["status"], done["worker"]) == ("succeeded", "edge-3"), done["error"]
    lines = [[line for line in ann.log(job) if not line.startswith("  ")] for job in (lost, again["id"])]
    assert lines == [
        ["network: changed", "database: changed", CONTINUING],
        [CONTINUING, "licence: ok", "argocd: changed", "cluster: changed", "outputs: ok"],
    ]
    assert ann.row("spec", "kept")["deployments"] == 1


def test_runners_look_after_runners(stack: Stack, ann: Person) -> None:
    """A new one on the host that is named, its release, its end."""
    ann.client.put("/api/runner/site-2", json={"host": "site-1", "release": "1"}).raise_for_status()
    assert ann.do("runner", "site-2", "deploy_worker")["worker"] == "site-1"
    eventually(lambda: stack.runners().get("site-2"), "it is there")
    assert stack.runners()["site-2"]["labels"] == {"release": "1"}
    ann.client.put("/api/runner/site-2", json={"host": "site-1", "release": "2"}).raise_for_status()
    updated = ann.do("runner", "site-2", "update_worker")
    assert (updated["worker"], updated["runner"]) == ("site-1", "site-1")
    eventually(lambda: stack.runners().get("site-2", {}).get("labels") == {"release": "2"}, "it has the new release")
    ann.do("runner", "site-2", "destroy_worker")
    eventually(lambda: "site-2" not in stack.runners(), "it has signed off")
    assert ann.row("runner", "site-2")["status"] == "gone"


def test_the_command_line_queues_the_same_work(stack: Stack, ann: Person) -> None:
    ann.save_spec("typed", free_port())
    token = ann.client.headers["Authorization"].removeprefix("Bearer ")

    def enqueue(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fenceline", "enqueue", *arguments, "--url", f"{stack.url}/queue"]
        environment = {**os.environ, "FENCELINE_TOKEN": token}
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)

    missing = enqueue("destroy", "--args", '{"spec": "nobody"}')
    assert (missing.returncode, "does not exist" in missing.stderr) == (1, True), missing.stderr
    made = enqueue("deploy", "--args", '{"spec": "typed"}', "--runner", "region=local")
    job = ann.ended(made.stdout.strip())
    assert (job["status"], job["created_by"]) == ("failed", "ann")
    assert "plan the spec first" in job["error"]["message"]
    assert job["snapshot_hash"] is not None


def test_credentials_are_used_and_never_written(stack: Stack, ann: Person) -> None:
    for name, identity in {"gcp": GCP_ACCOUNT, "azure": AZURE_CLIENT}.items():
        ann.client.put(f"/api/account/{name}", json={"identity": identity}).raise_for_status()
        assert ann.do("account", name, "connection_test")["result"]["caller"] == identity
    found = ann.do("account", "aws", "connection_test")["result"]
    assert found["caller"].startswith("arn:aws:sts::123456789012:assumed-role/deployer/")
    assert ann.do("account", "aws", "fetch_resources")["result"]["resources"] == found["resources"]
    assert ann.row("account", "aws")["resources"]["vpcs"] == found["resources"]["vpcs"] != []
    ann.client.put(
        "/api/account/foreign", json={"identity": "other@project.iam.gserviceaccount.com"}
    ).raise_for_status()
    refused = ann.ended(ann.press("account", "foreign", "connection_test"))
    assert (refused["status"], refused["error"]["code"]) == ("failed", "credentials")

    secrets = set(stack.services.issued)
    for backends in sts_backends.values():
        for role in backends["global"].assumed_roles:
            secrets |= {role.secret_access_key, role.session_token}
    assert len(secrets) > 6
    written = "".join(file.read_text() for file in stack.folder.glob("*.log")) + everything(stack)
    assert len(written) > 10_000
    assert [secret for secret in secrets if secret in written] == []


def everything(stack: Stack) -> str:
    """All that the database holds, as text."""
    tables = stack.rows(
        "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname in ('fenceline', 'public')"
    )
    return "".join(str(stack.rows(f"select t::text from {table} t")) for (table,) in tables)  # noqa: S608


class Watch:
    """What a browser is shown of a job: signed in with a code that the console gave, by a cookie from then on."""

    def __init__(self, url: str, authorization: str, job_id: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=seconds_left())
        codes = self._client.post("/queue/v1/session/codes", headers={"Authorization": authorization})
        code = codes.raise_for_status().json()["code"]
        self._client.post("/queue/v1/session", json={"code": code}).raise_for_status()
        self._seen: list[tuple[str, str]] = []
        self._thread = threading.Thread(target=self._read, args=(f"/queue/v1/jobs/{job_id}/stream",), daemon=True)
        self._thread.start()

    def _read(self, path: str) -> None:
        with self._client.stream("GET", path) as answer:
            event = ""
            for line in answer.iter_lines():
                if line.startswith("event:"):
                    event = line.removeprefix("event:").strip()
                elif line.startswith("data:"):
                    data = json.loads(line.removeprefix("data:"))
                    self._seen.append((event, data.get("message") if event == "log" else data.get("status")))

    def all(self) -> list[tuple[str, Any]]:
        """To the job's end."""
        self._thread.join(seconds_left())
        assert not self._thread.is_alive()
        self._client.close()
        return self._seen
