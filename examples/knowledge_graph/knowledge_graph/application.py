"""The app, the lanes as they are set up first, and the database of the graph, which is the queue's own."""

from pathlib import Path

import psycopg

from fenceline import Fenceline

app = Fenceline()

#: Which kinds run where. Slots, poll intervals and stale timeouts are Fenceline's seeded ones: 2 slots and 2 s, 1 and
#: 15 s, 1 and 30 s, 30 minutes. From then on all of it is the operators': `fenceline lanes set`.
LANES = {
    "interactive": ["ingestion", "ingest_image", "polarity"],
    "maintenance": [
        "projection",
        "vocab_refresh",
        "epistemic_remeasurement",
        "ontology_annealing",
        "proposal_execution",
    ],
    "system": ["restore", "vocab_consolidate", "artifact_cleanup", "source_embedding"],
}


def set_up() -> None:
    """Tables and lanes; again does no harm."""
    with connect() as connection:
        connection.execute((Path(__file__).parent / "graph.sql").read_text())
    for lane, kinds in LANES.items():
        app.sync.lanes.set(lane, kinds=kinds)


def connect() -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(app.sync.dsn(), autocommit=True)
