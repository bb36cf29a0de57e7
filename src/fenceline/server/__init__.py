"""The HTTP control plane: `fenceline server`. Needs the extra `server`.

A request comes in through `protocol.py` (bounded in bytes and time). `auth.py` identifies the caller, `routing.py`
checks the permission that the route names, `tenant_turns.py` makes it wait for its tenant's turn, and the work is one
call of `database/calls/`. Errors become problem documents of RFC 9457 (`problems.py`).

- `asgi_app.py` makes the application from `server_settings.py`, `run.py` runs it.
- Routes by noun: `jobs.py`, `job_actions.py`, `job_records.py`, `bulk.py`, `admin.py`, `schedules.py`, `stats.py`,
  `tokens.py`, `roles.py`, `upkeep.py`; runners: `runners.py`, `attempts.py`; webhooks: `incoming_webhooks.py`,
  `outgoing_webhooks.py`, delivered by `webhook_delivery.py`.
- Streams: `stream_hub.py` reads once for all, `subscription.py` is one client, `streams.py` the routes.
- `dashboard/`: pages and browser sessions.

Rules about jobs are in SQL; a route checks the form and the permission. This package does not import `worker`.
"""
