"""Every metric, from the collectors themselves, and every alert."""

# ruff: noqa: SLF001 - what the collectors declare is kept in private members

import re
from typing import Any, cast

import yaml
from prometheus_client.metrics_core import Metric
from scripts.manual.links import ROOT
from scripts.manual.reference.markdown import code, table

from fenceline.runtime.database import Database
from fenceline.server.metrics import ServerMetrics
from fenceline.worker.worker_metrics import Metrics

ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
#: What the values of a label mean, where the name does not say it.
LABELS = {
    "fenceline_workers": "`live`; `blocked`: a handler blocks its event loop; `lost`: silent",
    "fenceline_jobs": "`scheduled`, `waiting`, `awaiting_approval`; counted up to 100,000",
    "fenceline_jobs_ended": "`failed` is for good",
    "fenceline_start_wait_seconds": "`kind` is empty without `--private-metrics`",
    "fenceline_attempts_ended": "`outcome` as in the history: `succeeded`, `failed`, `snoozed`, `released` …",
}


def server_metrics() -> ServerMetrics:
    """It only counts here, and asks no database."""
    return ServerMetrics(cast("Database", None))


def of_server() -> list[Metric]:
    return sorted(server_metrics()._registry.collect(), key=by_name)


def of_worker() -> list[Metric]:
    return sorted(Metrics().collect(), key=by_name)


def by_name(metric: Metric) -> str:
    return str(metric.name)


def shown_name(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else str(metric.name)


def labels(metric: Any) -> tuple[str, ...]:
    server = server_metrics()
    counted = {made._name: made._labelnames for made in (server._requests, server._seconds)}
    return tuple(counted.get(metric.name) or getattr(metric, "_labelnames", None) or ())


def rows(metrics: list[Metric]) -> list[list[str]]:
    found = []
    for metric in metrics:
        names = ", ".join(code(label) for label in labels(metric))
        more = LABELS.get(metric.name)
        text = metric.documentation + (f" {names}: {more}." if more else "")
        found.append([code(shown_name(metric)), str(metric.type), names, text])
    return found


def alerts() -> list[dict[str, Any]]:
    loaded: dict[str, Any] = yaml.safe_load(ALERTS.read_text("utf-8"))
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def filled_in(text: str) -> str:
    """With words for what Prometheus puts there."""
    return re.sub(
        r"\{\{ \$value.*?\}\}", "N", re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: found[1].upper(), text)
    )


def alert_rows() -> list[list[str]]:
    return [
        [
            code(rule["alert"]),
            rule["labels"]["severity"],
            filled_in(f"{rule['annotations']['summary']}. {rule['annotations']['description']}"),
            code(f"{rule['expr']}" + (f" for {rule['for']}" if "for" in rule else "")),
        ]
        for rule in alerts()
    ]


def page() -> str:
    header = ["metric", "type", "labels", "what"]
    return f"""# Metrics and alerts

For Prometheus. [Monitoring](../operations/monitoring.md) explains how to collect them, and describes traces and logs.

## The server

`GET /metrics` of `fenceline server` (with `--private-metrics`, only for tokens with `workers:view`). Every server reports on the whole fleet: take the `max` over
servers, not the sum. Counters start at 0 with the server.

{table(header, rows(of_server()))}
## A worker

`fenceline worker --metrics-port N` (extra `metrics`). Every worker counts only its own work: take the `sum`.

{table(header, rows(of_worker()))}
## Alerts

From `deploy/prometheus/alerts.yaml`, which has promtool tests next to it. Adjust the thresholds to your lanes.

{table(["alert", "severity", "says", "when"], alert_rows())}
"""
