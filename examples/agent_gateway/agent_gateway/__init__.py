"""A gateway for agents: messages, triggers, plans and remote agents become jobs.

`app.py` has the app and the tables, `gateway.py` what is served over HTTP, `triggers.py` the webhooks, `agents.py` a
remote agent; the handlers are in `turns.py`, `analytics.py`, `providers.py`, `orchestrate.py`, `dispatch.py` and
`memories.py`, and `jobs.py` brings them together for a worker.
"""
