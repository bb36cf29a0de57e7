"""The graph: concepts are the longer words of a text, and belong together when the same chunks mention them."""

import re
from typing import Any

import numpy as np

CHUNK_WORDS = 40
MIN_LETTERS = 5

Connection = Any


def split(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[start : start + CHUNK_WORDS]) for start in range(0, len(words), CHUNK_WORDS)]


def concepts_in(text: str) -> list[str]:
    return sorted({word for word in re.findall(r"[a-z]+", text.lower()) if len(word) >= MIN_LETTERS})


def add_source(connection: Connection, source: str, ontology: str) -> None:
    connection.execute(
        "insert into kg.source (name, ontology) values (%s, %s) on conflict do nothing", (source, ontology)
    )


def store_chunk(connection: Connection, source: str, number: int, content: str, token: int) -> None:
    """All of a chunk or nothing of it; a second time changes nothing."""
    concepts = concepts_in(content)
    with connection.transaction():
        connection.execute(
            "insert into kg.chunk values (%s, %s, %s, %s) on conflict do nothing", (source, number, content, token)
        )
        connection.execute(
            "insert into kg.concept (name, ontology) select name, ontology from unnest(%s::text[]) as found (name),"
            " (select ontology from kg.source where name = %s) as source on conflict do nothing",
            (concepts, source),
        )
        connection.execute(
            "insert into kg.mention select name, %s, %s from unnest(%s::text[]) as found (name) on conflict do nothing",
            (source, number, concepts),
        )


def load_vectors(connection: Connection) -> "tuple[list[str], np.ndarray[Any, Any]]":
    """Concepts, and for each how often it is mentioned together with every other."""
    rows = connection.execute("select concept, source || '/' || chunk from kg.mention order by 1, 2").fetchall()
    names = sorted({concept for concept, _ in rows})
    chunks = {chunk: column for column, chunk in enumerate(sorted({chunk for _, chunk in rows}))}
    places = {name: row for row, name in enumerate(names)}
    mentioned = np.zeros((len(names), len(chunks)))
    for concept, chunk in rows:
        mentioned[places[concept], chunks[chunk]] = 1.0
    return names, mentioned @ mentioned.T
