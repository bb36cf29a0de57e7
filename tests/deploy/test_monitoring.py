"""Dashboard and alerts speak of metrics, and labels, that the program has."""

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any, cast

import promql_parser
import pytest
import yaml
from prometheus_client import CollectorRegistry
from tests.deploy.manifests import DEPLOY
from tests.support.patience import seconds_left
from tests.support.tools import needed_tool

from fenceline import Fenceline
from fenceline.server.metrics import ServerMetrics
from fenceline.worker.worker_metrics import Metrics

#: What Prometheus adds to every sample of ours.
ADDED_LABELS = {"instance", "job", "le"}
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


def families(registry: CollectorRegistry) -> Iterator[tuple[str, set[str]]]:
    """Every name that a query may use, with its labels."""
    for collector in list(registry._collector_to_names):
        for family in collector.collect():
            labels: tuple[str, ...] = getattr(family, "_labelnames", ()) or getattr(collector, "_labelnames", ())
            for suffix in SUFFIXES[family.type]:
                yield family.name + suffix, set(labels)


@pytest.fixture(scope="module")
def metrics() -> dict[str, set[str]]:
    server = ServerMetrics(cast("Any", Fenceline("postgresql://nowhere")))
    return dict(families(Metrics().registry())) | dict(families(server._registry))


def alerts() -> list[dict[str, Any]]:
    document = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana" / "fenceline.json").read_text())
    return found


def expressions() -> list[tuple[str, str]]:
    panels = [(panel["title"], target["expr"]) for panel in dashboard()["panels"] for target in panel["targets"]]
    return [(rule["alert"], rule["expr"]) for rule in alerts()] + [
        (title, expr.replace("$__rate_interval", "5m")) for title, expr in panels
    ]


def check(expression: str, metrics: dict[str, set[str]]) -> None:
    promql_parser.parse(expression)
    names = re.findall(r"\bfenceline_\w+", expression)
    assert names
    known: set[str] = set(ADDED_LABELS)
    for name in names:
        assert name in metrics, name
        known |= metrics[name]
    used = {label.strip() for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression) for label in group.split(",")}
    used |= set(re.findall(r"[{,]\s*(\w+)(?:=~|!~|!=|=)", expression))
    assert used <= known, f"{used - known} is no label of {names}"


def test_the_program_has_metrics(metrics: dict[str, set[str]]) -> None:
    assert metrics["fenceline_lane_depth"] == {"lane"}
    assert metrics["fenceline_attempts_ended_total"] == {"kind", "outcome"}


@pytest.mark.parametrize("name, expression", expressions(), ids=[name for name, _ in expressions()])
def test_expressions_are_valid_and_about_what_there_is(
    name: str, expression: str, metrics: dict[str, set[str]]
) -> None:
    check(expression, metrics)


@pytest.mark.parametrize(
    "expression",
    ["sum(fenceline_lane_dept)", "sum by (tenant) (fenceline_lane_depth)", 'fenceline_lane_depth{queue="x"}'],
)
def test_a_wrong_name_would_be_noticed(expression: str, metrics: dict[str, set[str]]) -> None:
    with pytest.raises(AssertionError):
        check(expression, metrics)


def test_every_metric_of_lanes_and_attempts_is_on_the_dashboard(metrics: dict[str, set[str]]) -> None:
    text = json.dumps(dashboard())
    for name in metrics:
        if not name.endswith(("_sum", "_count")):
            assert name in text, name


def test_alerts_say_what_to_do() -> None:
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]


def test_the_dashboard_can_be_imported() -> None:
    found = dashboard()
    identities = [panel["id"] for panel in found["panels"]]
    assert len(set(identities)) == len(identities)
    variables = {variable["name"] for variable in found["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(found["panels"])))
    assert used <= variables


def test_alerts_fire_when_they_should_and_only_then() -> None:
    """All workers dead, nothing that ends, a job in quarantine; and silence about a fleet at work."""
    promtool = needed_tool("promtool")
    for command in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
        done = subprocess.run(
            [promtool, *command],
            cwd=DEPLOY / "prometheus",
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds_left(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
