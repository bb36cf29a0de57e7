"""Lane maintenance: the graph is kept in shape, mostly by the clock; each kind can be cancelled half-way."""

import json
from typing import TYPE_CHECKING, Any

from fenceline import SyncContext
from knowledge_graph.application import app, connect
from knowledge_graph.graph import load_vectors

if TYPE_CHECKING:
    import numpy as np

#: As few as t-SNE does in one go.
ITERATIONS = 250


@app.job(isolated=True, timeout=3600, retry=3)
def projection(ctx: SyncContext, rounds: int = 4) -> int:
    """A place in the plane for every concept, by t-SNE. Busy with numbers, so in a process of its own."""
    with connect() as connection:
        names, vectors = load_vectors(connection)
    if not names:
        return 0
    kept: dict[str, Any] = ctx.resume or {}
    if kept.get("names") != names:  # the graph has grown since: from the beginning
        kept = {"rounds": 0, "places": None}
    places = kept["places"]
    for done in range(kept["rounds"], rounds):
        ctx.raise_if_cancelled()
        ctx.progress(done, rounds)
        places = project(vectors, places)
        ctx.checkpoint({"rounds": done + 1, "places": places, "names": names})
    # The map and the end of the job commit together.
    with ctx.transaction() as connection:
        for name, (x, y) in zip(names, places, strict=True):
            connection.execute("update kg.concept set x = %s, y = %s where name = %s", (x, y, name))
        connection.execute("insert into kg.artifact (content) values (%s)", (json.dumps({"concepts": len(names)}),))
        connection.result = len(names)
    return len(names)


def project(vectors: "np.ndarray[Any, Any]", places: list[list[float]] | None) -> list[list[float]]:
    """Some iterations, from where the last ones ended."""
    import numpy as np  # noqa: PLC0415 - as below
    from sklearn.manifold import TSNE  # noqa: PLC0415 - a second or two, for this process only
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - as above

    begin = "random" if places is None else np.array(places, dtype=np.float32)
    perplexity = min(30.0, len(vectors) / 4)
    with threadpool_limits(1):  # a slot is one core
        tsne = TSNE(init=begin, max_iter=ITERATIONS, perplexity=perplexity, random_state=0)
        found: list[list[float]] = tsne.fit_transform(vectors).tolist()
    return found


@app.schedule("17 * * * *")
@app.job
def vocab_refresh(ctx: SyncContext) -> int:
    """How large each ontology is, one after the other."""
    with connect() as connection:
        ontologies = connection.execute("select distinct ontology from kg.concept order by 1").fetchall()
        for done, (ontology,) in enumerate(ontologies):
            ctx.progress(done, len(ontologies), str(ontology))
            connection.execute(
                "insert into kg.vocabulary select ontology, count(*), now() from kg.concept where ontology = %s"
                " group by 1 on conflict (ontology) do update set concepts = excluded.concepts, refreshed_at = now()",
                (ontology,),
            )
    return len(ontologies)


@app.schedule("37 * * * *")
@app.job
def epistemic_remeasurement() -> int:
    """How sure a concept is: by the share of sources that know it."""
    with connect() as connection:
        return connection.execute(
            "update kg.concept set confidence = (select count(distinct source) from kg.mention where concept = name)"
            "::real / greatest(1, (select count(*) from kg.source))"
        ).rowcount


@app.job
def ontology_annealing(ctx: SyncContext) -> int:
    """Propose to merge plurals into singulars; each proposal is a job that a person approves."""
    with connect() as connection:
        made = connection.execute(
            "insert into kg.proposal (keep, merge) select one.name, many.name from kg.concept one"
            " join kg.concept many on many.name = one.name || 's' on conflict do nothing returning id"
        ).fetchall()
    for (proposal,) in made:
        ctx.enqueue(proposal_execution, {"proposal": proposal})
    return len(made)


@app.job(needs_approval=True)
def proposal_execution(ctx: SyncContext, proposal: int) -> None:
    """One concept takes over what another one has, in the transaction that ends the job."""
    with ctx.transaction() as connection:
        keep, merge = connection.execute(
            "update kg.proposal set executed = true where id = %s returning keep, merge", (proposal,)
        ).fetchone()
        connection.execute(
            "insert into kg.mention select %s, source, chunk from kg.mention where concept = %s on conflict do nothing",
            (keep, merge),
        )
        connection.execute("delete from kg.mention where concept = %s", (merge,))
        connection.execute("delete from kg.concept where name = %s", (merge,))
