"""A queue over SQL: the client's own parts, and what only commands need."""

from collections.abc import Mapping, Sequence
from typing import Any

from fenceline.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.job import Job
from fenceline.database import calls
from fenceline.doctor.finding import Finding, Limits
from fenceline.model.job import JobFilter, JobPage
from fenceline.model.public_id import parse_id
from fenceline.model.secret import new_token

# Somebody is waiting at the keyboard: give up on an unreachable database much sooner than a worker would.
PAUSES = (0.1, 0.3)
CONNECT_SECONDS = 10.0
MAX_TOKENS = 1000


class DirectQueue:
    """The audit log names `user@host` as the actor."""

    def __init__(self, dsn: str | None) -> None:
        self._dsn = dsn
        self._app = Fenceline(dsn)
        app_parts(self._app).database().pauses = PAUSES
        self.lanes = self._app.lanes
        self.schedules = self._app.schedules
        self.stats = self._app.stats
        self.system = self._app.system

    async def close(self) -> None:
        await self._app.close()

    def job(self, job_id: str) -> Job[Any]:
        return self._app.jobs.handle(job_id)

    async def enqueue(self, kind: str, args: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        """The id of the new (or existing) job; `options` have their HTTP names."""
        chosen: EnqueueOptions = {**options}  # type: ignore[typeddict-item]  # the database checks the names
        return (await self._app.enqueue(kind, args, **chosen)).id

    async def list_jobs(
        self,
        which: JobFilter,
        *,
        limit: int,
        cursor: str | None = None,
        fields: Sequence[str] = (),  # noqa: ARG002 - all of them are always there
    ) -> JobPage:
        place = None if cursor is None else parse_id(cursor)
        return await app_parts(self._app).database().call(calls.jobs.page_jobs(which, limit=limit, cursor=place))

    async def examine(self, limits: Limits) -> list[Finding]:
        import asyncpg

        from fenceline.database.dsn import Source
        from fenceline.database.migrate import migrate
        from fenceline.doctor.examine import examine

        source = Source(self._dsn)
        try:
            # Not through the client, which refuses a database whose schema does not fit: that is a finding of ours.
            connection = await asyncpg.connect(await source.dsn(), timeout=CONNECT_SECONDS, statement_cache_size=0)
            try:
                if source.is_embedded:
                    await migrate(connection)
                return await examine(connection, limits)
            finally:
                await connection.close()
        finally:
            source.close()

    async def create_token(
        self, *, lanes: list[str] | None, kinds: list[str] | None, **settings: Any
    ) -> dict[str, Any]:
        """The record that is stored, and the secret as `token`. `settings`: role, tenant, name and expires_at."""
        database, actor = app_parts(self._app).database(), app_parts(self._app).actor
        secret, token_hash = new_token()
        made = await database.call(calls.tokens.create_token(token_hash, **settings, actor=actor))
        if lanes is not None or kinds is not None:
            made = await database.call(calls.tokens.bind_token(made["id"], lanes=lanes, kinds=kinds, actor=actor))
        return {"token": secret, **made}

    async def tokens(self, tenant: str | None) -> list[dict[str, Any]]:
        """Newest first, the last thousand."""
        return await app_parts(self._app).database().call(calls.tokens.list_tokens(tenant=tenant, limit=MAX_TOKENS))

    async def revoke_token(self, token_id: int) -> str:
        """Its name."""
        revoke = calls.tokens.revoke_token(token_id, actor=app_parts(self._app).actor, tenant=None)
        return str((await app_parts(self._app).database().call(revoke))["name"])
