"""Lane system: housekeeping."""

from fenceline import SyncContext
from knowledge_graph.application import app, connect

BATCH = 20
FEATURES = 64


@app.job
def restore(ctx: SyncContext, concepts: dict[str, str]) -> int:
    """Concepts of a backup, with their ontologies, exactly once."""
    with ctx.transaction() as connection:
        for name, ontology in concepts.items():
            connection.execute("insert into kg.concept values (%s, %s) on conflict do nothing", (name, ontology))
        connection.result = len(concepts)
    return len(concepts)


@app.job
def vocab_consolidate(min_mentions: int = 2) -> int:
    """Forget concepts that are hardly mentioned."""
    with connect() as connection, connection.transaction():
        rare = "select concept from kg.mention group by concept having count(*) < %s"
        gone = connection.execute(f"delete from kg.concept where name in ({rare})", (min_mentions,)).rowcount  # noqa: S608 - ours
        connection.execute("delete from kg.mention where concept not in (select name from kg.concept)")
    return gone


@app.schedule("43 3 * * *")
@app.job
def artifact_cleanup(keep_days: int = 30) -> int:
    with connect() as connection:
        return connection.execute(
            "delete from kg.artifact where created_at < now() - make_interval(days => %s)", (keep_days,)
        ).rowcount


@app.job
def source_embedding(ctx: SyncContext) -> int:
    """A vector for every source that has none, batch by batch: what is done stays, whatever happens then."""
    from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415 - only where it is needed

    vectorizer, done = HashingVectorizer(n_features=FEATURES), 0
    with connect() as connection:
        while batch := connection.execute(
            "select name, (select string_agg(content, ' ') from kg.chunk where source = name) from kg.source"
            " where embedding is null limit %s",
            (BATCH,),
        ).fetchall():
            ctx.raise_if_cancelled()
            vectors = vectorizer.transform([content or "" for _, content in batch]).toarray().tolist()
            for (name, _), vector in zip(batch, vectors, strict=True):
                connection.execute("update kg.source set embedding = %s where name = %s", (vector, name))
            done += len(batch)
    return done
