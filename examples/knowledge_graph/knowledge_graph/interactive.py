"""Lane interactive: what people ask for. It goes before what the clock asks for."""

import struct
from pathlib import Path

import numpy as np

from fenceline import NotFound, SyncContext
from knowledge_graph.application import app, connect
from knowledge_graph.graph import add_source, load_vectors, split, store_chunk

ASKED_FOR = 10

PNG = b"\x89PNG\r\n\x1a\n"
DESCRIPTION = b"Description\0"


@app.job(priority=ASKED_FOR, needs_approval=True, retry=3)
def ingestion(ctx: SyncContext, source: str, text: str, ontology: str = "default") -> dict[str, int]:
    """A text becomes part of the graph, chunk by chunk."""
    return ingest(ctx, source, text, ontology)


@app.job(priority=ASKED_FOR, needs_approval=True, retry=3)
def ingest_image(ctx: SyncContext, path: str, ontology: str = "default") -> dict[str, int]:
    """What a PNG says about itself."""
    return ingest(ctx, path, read_description(Path(path)), ontology)


@app.job(priority=ASKED_FOR)
def polarity(concept: str, negative: str, positive: str) -> float:
    """Where a concept stands between two others: from -1 to 1."""
    with connect() as connection:
        names, vectors = load_vectors(connection)
    if missing := {concept, negative, positive} - set(names):
        raise NotFound(f"not in the graph: {', '.join(sorted(missing))}")
    here, low, high = (vectors[names.index(name)] for name in (concept, negative, positive))
    to_low, to_high = np.linalg.norm(here - low), np.linalg.norm(here - high)
    return float((to_low - to_high) / ((to_low + to_high) or 1.0))


def ingest(ctx: SyncContext, source: str, text: str, ontology: str) -> dict[str, int]:
    chunks = split(text)
    begin: int = ctx.resume or 0
    with connect() as connection:
        add_source(connection, source, ontology)
        for number in range(begin, len(chunks)):
            ctx.progress(number, len(chunks), source)  # where a cancel is heard; what is stored stays
            store_chunk(connection, source, number, chunks[number], ctx.token)
            ctx.checkpoint(number + 1)
        ctx.progress(len(chunks), len(chunks), source)
    return {"chunks": len(chunks), "resumed_at": begin}


def read_description(path: Path) -> str:
    """The text chunk `Description`. Raises ValueError."""
    data = path.read_bytes()
    if not data.startswith(PNG):
        raise ValueError(f"{path} is no PNG")
    place = len(PNG)
    while place < len(data):
        length, name = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        if name == b"tEXt" and body.startswith(DESCRIPTION):
            return body.removeprefix(DESCRIPTION).decode("latin-1")
        place += 12 + length
    raise ValueError(f"{path} does not say what it shows")
