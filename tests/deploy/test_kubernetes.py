"""The manifests: valid, with command lines that the program understands and a query that PostgreSQL answers."""

import json
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it has no hints
import psycopg
import pytest
from tests.deploy.manifests import KUBERNETES, documents, manifests, parse, pods

MANIFESTS = dict(manifests())
#: A login per program: what a handler can do to the queue is what its worker's login may.
DSN_OF = {"migrate": "owner-dsn", "server": "server-dsn", "worker": "worker-dsn", "run": "producer-dsn"}
POD_SPECS = [(name, pod) for name, manifest in MANIFESTS.items() for pod in pods(manifest)]
OF_KUBERNETES = {name: manifest for name, manifest in MANIFESTS.items() if "keda.sh" not in manifest["apiVersion"]}


def test_everything_asked_for_is_there() -> None:
    kinds = sorted(manifest["kind"] for manifest in MANIFESTS.values())
    assert kinds == sorted(
        ["Deployment", "Deployment", "Service", "PodDisruptionBudget", "PodDisruptionBudget", "CronJob", "Job",
         "ScaledObject", "ScaledJob", "TriggerAuthentication", "TriggerAuthentication",
         "NetworkPolicy", "NetworkPolicy", "NetworkPolicy"]
    )  # fmt: skip


@pytest.mark.parametrize("name", OF_KUBERNETES)
@pytest.mark.parametrize("version", ["1.27", "1.32"])
def test_objects_are_valid(name: str, version: str) -> None:
    kubernetes_validate.validate(OF_KUBERNETES[name], version, strict=True)


def test_a_wrong_field_would_be_noticed() -> None:
    wrong = {**OF_KUBERNETES["base/worker.yaml/PodDisruptionBudget"], "spec": {"maxUnavaliable": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.32", strict=True)


@pytest.mark.parametrize("folder", ["base", "keda", "keda-jobs"])
def test_every_file_is_in_its_kustomization(folder: str) -> None:
    [kustomization] = documents(KUBERNETES / folder / "kustomization.yaml")
    files = {name for name in kustomization["resources"] if name.endswith(".yaml")}
    assert files == {path.name for path in (KUBERNETES / folder).glob("*.yaml")} - {"kustomization.yaml"}
    for name in kustomization["resources"]:
        assert (KUBERNETES / folder / name).exists()


@pytest.mark.parametrize("name, pod", POD_SPECS, ids=[name for name, _ in POD_SPECS])
def test_pods_run_commands_that_exist_with_few_rights(name: str, pod: dict[str, Any]) -> None:
    [container] = pod["containers"]
    command, options = parse(container["args"])
    assert command in ("migrate", "server", "worker", "run")
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["automountServiceAccountToken"] is False, "a job has no business with the cluster's own API"
    [variable] = container["env"]
    assert variable["name"] == "FENCELINE_DSN"
    assert variable["valueFrom"]["secretKeyRef"]["key"] == DSN_OF[command]
    if command == "worker":
        assert pod["terminationGracePeriodSeconds"] > options["grace"] + 2, "Kubernetes kills before the worker is done"


def test_selectors_meet_their_pods() -> None:
    labels = {
        manifest["metadata"]["name"]: manifest["spec"]["template"]["metadata"]["labels"]
        for manifest in MANIFESTS.values()
        if manifest["kind"] == "Deployment"
    }
    for manifest in MANIFESTS.values():
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        match manifest["kind"]:
            case "Deployment" | "PodDisruptionBudget":
                assert spec["selector"]["matchLabels"].items() <= labels[name].items()
            case "Service":
                assert spec["selector"].items() <= labels[name].items()
            case "ScaledObject":
                assert spec["scaleTargetRef"]["name"] in labels


def test_nobody_connects_to_a_pod_unless_a_policy_says_so() -> None:
    policies = {
        manifest["metadata"]["name"]: manifest["spec"]
        for manifest in MANIFESTS.values()
        if manifest["kind"] == "NetworkPolicy"
    }
    everybody = policies.pop("fenceline")
    assert everybody["policyTypes"] == ["Ingress"]
    assert "ingress" not in everybody, "what it selects takes nothing"
    [kustomization] = documents(KUBERNETES / "base" / "kustomization.yaml")
    assert everybody["podSelector"]["matchLabels"].items() <= kustomization["labels"][0]["pairs"].items()
    assert kustomization["labels"][0]["includeTemplates"] is True, "or no pod has the label"
    ports = {
        name: [port["port"] for rule in spec["ingress"] for port in rule["ports"]] for name, spec in policies.items()
    }
    assert ports == {"fenceline-server": ["http"], "fenceline-worker": ["metrics"]}


def test_the_first_token_stays_in_the_pod() -> None:
    [pod] = pods(MANIFESTS["base/server.yaml/Deployment"])
    _, options = parse(pod["containers"][0]["args"])
    [mount], [volume] = pod["containers"][0]["volumeMounts"], pod["volumes"]
    assert str(options["first_token_file"]).startswith(mount["mountPath"])
    assert (volume["name"], volume["emptyDir"]["medium"]) == (mount["name"], "Memory")


def test_a_pod_per_job_takes_one_job_and_is_content_with_none() -> None:
    job = MANIFESTS["keda-jobs/scaledjob.yaml/ScaledJob"]["spec"]
    [pod] = pods(job)
    _, options = parse(pod["containers"][0]["args"])
    assert (options["once"], options["empty_exit"]) == (True, 0)
    assert job["jobTargetRef"]["backoffLimit"] == 0, "retries are Fenceline's"
    assert job["scalingStrategy"]["strategy"] == "accurate", "depth does not count what is claimed"


def query_of(name: str) -> str:
    [trigger] = MANIFESTS[name]["spec"]["triggers"]
    assert trigger["type"] == "postgresql"
    return str(trigger["metadata"]["query"])


def test_the_scalers_queries_count(database: str) -> None:
    """As the scaler asks: one number, from a role that may only read."""
    deployment, jobs = query_of("keda/scaledobject.yaml/ScaledObject"), query_of("keda-jobs/scaledjob.yaml/ScaledJob")
    with (
        psycopg.connect(database, autocommit=True) as sql,
        psycopg.connect(database, autocommit=True, options="-c role=fenceline_reader") as reader,
    ):

        def numbers() -> tuple[int, int]:
            answers = [reader.execute(query.encode()).fetchall() for query in (deployment, jobs)]
            (first,), (second,) = answers[0][0], answers[1][0]
            return int(first), int(second)

        assert numbers() == (0, 0), "also while the lane does not exist"
        sql.execute("select fenceline.set_lane('heavy')")
        for lane in ("default", "default", "heavy"):
            sql.execute("select fenceline.enqueue('work', '{}', %s)", (json.dumps({"lane": lane}),))
        assert numbers() == (2, 1)
        for lane in ("default", "heavy"):
            sql.execute("select fenceline.claim_jobs(fenceline.register_worker('w', 60), %s, 1)", (lane,))
        assert numbers() == (2, 0), "a running job keeps its worker, and asks for no second pod"
        sql.execute("""select fenceline.set_lane('default', '{"enabled": false}')""")
        assert numbers() == (1, 0), "a drained lane asks for nobody"


def test_no_secret_is_in_a_file() -> None:
    for path in Path(KUBERNETES).rglob("*.yaml"):
        assert not [document for document in documents(path) if document["kind"] == "Secret"], path
