"""The HTTP control plane: `fenceline server`. Needs the extra `server`.

A request comes in through `protocol.py` (bounded in bytes and time), is identified by `auth.py` and allowed by the
permission that its route names (`routing.py`), waits its tenant's turn for the database (`tenant_turns.py`), and is one
call of `database/calls/`. What is refused becomes a problem of RFC 9457 (`problems.py`).

- `asgi_app.py` makes the application from `server_settings.py`, `run.py` runs it.
- Routes by noun: `jobs.py`, `job_actions.py`, `job_records.py`, `bulk.py`, `admin.py`, `schedules.py`, `stats.py`,
  `tokens.py`, `roles.py`, `upkeep.py`; runners: `runners.py`, `attempts.py`; webhooks: `incoming_webhooks.py`,
  `outgoing_webhooks.py`, delivered by `webhook_delivery.py`.
- Streams: `stream_hub.py` reads once for all, `subscription.py` is one client, `streams.py` the routes.
- `dashboard/`: pages and browser sessions.

Rules about jobs are in SQL; a route checks form and permission. It does not know `worker`.
"""
