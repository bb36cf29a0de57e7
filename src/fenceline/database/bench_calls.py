"""What `fenceline bench` needs beside the calls of clients and workers."""

from collections.abc import Sequence

from fenceline.database.calls import Call, Row


def delete_jobs(job_ids: Sequence[int], *, actor: str | None, reason: str | None) -> Call[int]:
    """Delete those that are finished, and say how many there were."""
    return Call(
        "select fenceline.delete_jobs($1, $2, $3)",
        (list(job_ids), actor, reason),
        lambda rows: int(rows[0][0]),
        repeatable=True,  # what is gone is not deleted again
    )


def server_settings() -> Call[dict[str, str]]:
    """The settings that rates depend on most."""

    def decode(rows: Sequence[Row]) -> dict[str, str]:
        return dict(zip(("server_version", "fsync", "synchronous_commit"), rows[0], strict=True))

    return Call(
        "select current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')",
        (),
        decode,
        repeatable=True,
    )
