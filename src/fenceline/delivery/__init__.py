"""How attempts come to whoever runs them, and how their ends get back: one module per way, one contract for all.

`contract.py` says what the engine asks of a delivery: register, claim, start, report, finish, heartbeat, check. These
do it:

- `postgres.py`: workers, over connections that outlast a restart.
- `http.py`: runners, through a server; `http_api.py` for what `ctx` asks.
- `messages.py`: workers whose jobs a backend such as Arq announces; `database_delivery` makes what an app needs.

`…_leases.py` are for whoever keeps leases from outside (ADR 5). `fenceline.testing.delivery` has the tests that each
way must pass. A delivery carries and decides nothing; it does not know the engine.
"""
