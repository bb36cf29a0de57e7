"""Who may do what, every kind in its lane, and a worker that is killed between two chunks."""

import signal
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from fenceline.testing import TestedApp
from knowledge_graph.application import LANES, connect
from knowledge_graph.graph import CHUNK_WORDS

if TYPE_CHECKING:
    from examples.conftest import Programs

pytestmark = pytest.mark.fenceline(app="knowledge_graph.jobs:app")

TEXT = "graph graphs vertex vertices connect meaning people language machines"
WAITING = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    " and query like 'insert into kg.chunk%'"
)
AsRole = Callable[..., TestClient]


def test_ingestion_is_approved_by_somebody_else(as_role: AsRole, fenceline_app: TestedApp) -> None:
    ann, bob = as_role("producer", "ann"), as_role("operator", "bob")
    body = {"kind": "ingestion", "args": {"source": "note", "text": TEXT}, "needs_approval": False}
    made = ann.post("/v1/jobs", json=body)
    assert made.status_code == 202
    job = made.json()
    # Whatever is asked for: the kind demands it.
    assert (job["status"], job["lane"], job["priority"]) == ("awaiting_approval", "interactive", 10)
    assert fenceline_app.sync.drain() == 0
    assert ann.post(f"/v1/jobs/{job['id']}/approve").status_code == 403
    own = bob.post("/v1/jobs", json=body).json()
    refused = bob.post(f"/v1/jobs/{own['id']}/approve")
    assert (refused.status_code, refused.json()["reason"]) == (403, "own_approval")
    assert bob.post(f"/v1/jobs/{job['id']}/approve").json()["status"] == "queued"
    assert fenceline_app.sync.drain() == 1
    done = ann.get(f"/v1/jobs/{job['id']}").json()
    assert (done["status"], done["result"]) == ("succeeded", {"chunks": 1, "resumed_at": 0})
    with ann.stream("GET", f"/v1/jobs/{job['id']}/stream") as events:
        assert '"succeeded"' in events.read().decode()
    # People see their own jobs, operators all of the tenant's.
    assert [item["id"] for item in ann.get("/v1/jobs").json()["items"]] == [job["id"]]
    assert len(bob.get("/v1/jobs").json()["items"]) == 2
    assert ann.delete(f"/v1/jobs/{own['id']}").status_code == 404
    assert bob.delete(f"/v1/jobs/{own['id']}").json()["status"] == "cancelled"


def test_every_kind_runs_in_its_lane(fenceline_app: TestedApp, graph: Any, tmp_path: Path) -> None:
    picture = tmp_path / "map.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + png_chunk(b"tEXt", b"Description\0people with machines"))
    enqueue = fenceline_app.sync.enqueue

    def run(kind: str, args: dict[str, Any] | None = None) -> Any:
        job = enqueue(kind, args)
        if job.status() == "awaiting_approval":
            job.approve(actor="bob")
        fenceline_app.sync.drain()
        return job.result()

    assert run("projection") == 0  # of nothing
    assert run("ingestion", {"source": "note", "text": TEXT}) == {"chunks": 1, "resumed_at": 0}
    assert run("ingest_image", {"path": str(picture)}) == {"chunks": 1, "resumed_at": 0}
    assert run("polarity", {"concept": "graph", "negative": "people", "positive": "graph"}) == 1.0
    assert run("projection", {"rounds": 1}) == 9
    assert ask(graph, "select count(*) from kg.concept where x is not null") == 9
    assert run("vocab_refresh") == 1
    assert run("epistemic_remeasurement") == 9
    assert ask(graph, "select confidence from kg.concept where name = 'people'") == 1.0
    assert run("ontology_annealing") == 1
    [proposed] = fenceline_app.sync.assert_enqueued("proposal_execution", status="awaiting_approval")
    fenceline_app.sync.jobs.handle(proposed.id).approve(actor="bob")
    fenceline_app.sync.drain()
    assert ask(graph, "select count(*) from kg.concept where name = 'graphs'") == 0
    assert run("source_embedding") == 2
    assert run("restore", {"concepts": {"edges": "default"}}) == 1
    assert run("vocab_consolidate", {"min_mentions": 2}) > 0
    assert run("artifact_cleanup", {"keep_days": 0}) == 1
    ran = {kind: lane for lane, kinds in LANES.items() for kind in kinds}
    assert {record.kind: record.lane for record in fenceline_app.sync.jobs.list(limit=100).items} == ran


def test_after_kill_9_ingestion_goes_on_behind_the_last_chunk(
    fenceline_app: TestedApp, graph: Any, programs: "Programs"
) -> None:
    text = " ".join([TEXT] * CHUNK_WORDS)
    job = fenceline_app.sync.enqueue("ingestion", {"source": "book", "text": text})
    job.approve(actor="bob")
    # Somebody else is about to write the fourth chunk: whoever wants to do the same waits in the middle.
    with connect() as other, other.transaction(force_rollback=True):
        other.execute("insert into kg.chunk values ('book', 3, '', 0)")
        worker = programs.start(
            "fenceline", "worker", "knowledge_graph.jobs:app", "--lanes", "interactive", "--lease", "30"
        )
        programs.until(lambda: ask(graph, WAITING) == 1, "three chunks are stored, the fourth waits")
        programs.until(lambda: job.get().started_at is not None, "the start is told")
        programs.signal(worker, signal.SIGKILL)
        worker.wait()
    fenceline_app.sync.advance(seconds=31)
    programs.until(lambda: fenceline_app.sync.system.depth("interactive") == 1, "the lease of the worker is over")
    fenceline_app.sync.drain()
    assert job.result()["resumed_at"] == 3
    chunks = job.result()["chunks"]
    written = graph.execute("select number, token from kg.chunk order by 1").fetchall()
    assert [number for number, _ in written] == list(range(chunks))
    # Each once: three by the first attempt, the rest by the second.
    tokens = [token for _, token in written]
    assert len(set(tokens[:3])) == 1
    assert len(set(tokens[3:])) == 1
    assert tokens[0] < tokens[3]


def ask(graph: Any, sql: str) -> Any:
    return graph.execute(sql).fetchone()[0]


def png_chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
