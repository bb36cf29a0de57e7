"""`provider-refresh`: which providers answer, and which models they have."""

from datetime import UTC, datetime
from typing import Any

import httpx

from agent_gateway.app import app
from agent_gateway.dispatch import agents
from fenceline import Context

UPSERT = """
insert into gateway.provider values ($1, $2, $3, $4)
on conflict (url) do update set models = excluded.models, healthy = excluded.healthy, checked_at = excluded.checked_at
"""


@app.schedule("*/5 * * * *", key="provider-refresh", misfire="skip")
@app.job(kind="provider-refresh")
async def provider_refresh(ctx: Context) -> dict[str, list[str]]:
    """One that does not answer is an error among the others' results, not a failure of all."""
    rows: list[tuple[Any, ...]] = []
    errors: list[dict[str, str]] = []
    async with httpx.AsyncClient(timeout=5.0) as client:
        for url in agents():
            try:
                models = (await client.get(f"{url}/models")).raise_for_status().json()
            except httpx.HTTPError as error:
                models = []
                errors.append({"provider": url, "error": str(error) or type(error).__name__})
            rows.append((url, models, bool(models), datetime.now(UTC)))
    found = {row[0]: row[1] for row in rows}
    async with ctx.transaction() as conn:
        await conn.executemany(UPSERT, rows)
        conn.result, conn.errors = found, errors
    return found
