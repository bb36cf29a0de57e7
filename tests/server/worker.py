"""Somebody who does the jobs by SQL, so that a test decides when."""

import json
from typing import Any
from uuid import UUID

import asyncpg

from fenceline.model.public_id import format_id


class Hand:
    """Claims and finishes, one call at a time."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]", worker_id: int) -> None:
        self.connection = connection
        self.worker_id = worker_id

    async def claim(self, lane: str = "default", limit: int = 1) -> dict[str, UUID]:
        """The attempt of each claimed job, by public id."""
        rows = await self.connection.fetch(
            "select job_id, attempt_id from fenceline.claim_jobs($1, $2, $3)", self.worker_id, lane, limit
        )
        return {format_id(row["job_id"]): row["attempt_id"] for row in rows}

    async def run(
        self, outcome: str = "succeeded", *, lane: str = "default", result: Any = None, error: Any = None
    ) -> str:
        """Claim the next job and end it; returns its id."""
        ((job_id, attempt_id),) = (await self.claim(lane)).items()
        await self.finish(job_id, attempt_id, outcome, result=result, error=error)
        return job_id

    async def finish(
        self, job_id: str, attempt_id: UUID, outcome: str = "succeeded", *, result: Any = None, error: Any = None
    ) -> None:
        verdict = await self.connection.fetchval(
            "select fenceline.finish_attempt(fenceline.parse_public_id($1), $2, $3, $4, $5)",
            job_id, attempt_id, outcome, *(None if each is None else json.dumps(each) for each in (result, error)),
        )  # fmt: skip
        assert verdict == "accepted"

    async def log(self, job_id: str, attempt_id: UUID, *messages: str) -> None:
        lines = json.dumps([{"message": message} for message in messages])
        assert await self.connection.fetchval(
            "select fenceline.write_log(fenceline.parse_public_id($1), $2, $3)", job_id, attempt_id, lines
        )
