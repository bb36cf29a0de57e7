"""`embed-memories`: what the agents remember, as vectors, so that a turn finds what is about the same.

The vectors are made by hashing words: no model, no download, the same everywhere.
"""

import hashlib
import math
import re

from agent_gateway.app import app, connection
from fenceline import Context

DIMENSIONS = 256
CHUNK = 100


def embed(text: str) -> list[float]:
    """A unit vector: each word adds to or takes from the place that its hash names."""
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
        vector[number % DIMENSIONS] += 1.0 if number >> 63 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


@app.schedule("0 * * * *", key="embed-memories")
@app.job(kind="embed-memories")
async def embed_memories(ctx: Context) -> int:
    """Chunk by chunk, until none is left. Doing a chunk again changes nothing."""
    done = 0
    async with connection() as conn:
        while rows := await conn.fetch("select id, text from gateway.memory where vector is null limit $1", CHUNK):
            vectors = [(row["id"], embed(row["text"])) for row in rows]
            await conn.executemany("update gateway.memory set vector = $2 where id = $1", vectors)
            done += len(rows)
            await ctx.progress(done, message="memories embedded")
    return done


async def recall(text: str, *, least: float = 0.3) -> str | None:
    """The memory that is most about the same, if any is."""
    wanted = embed(text)
    async with connection() as conn:
        rows = await conn.fetch("select text, vector from gateway.memory where vector is not null")
    scored = [(sum(a * b for a, b in zip(wanted, row["vector"], strict=True)), row["text"]) for row in rows]
    score, best = max(scored, default=(0.0, ""))
    return best if score >= least else None
