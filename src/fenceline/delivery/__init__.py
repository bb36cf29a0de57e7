"""How attempts reach the engine, and how their ends get back: one module per way, one contract for all.

`contract.py` says what the engine needs of a delivery: register, claim, start, report, finish, heartbeat, check. The
implementations:

- `postgres.py`: workers, over connections that outlast a restart.
- `http.py`: runners, through a server; `http_api.py` for the calls of `ctx`.
- `messages.py`: workers whose jobs a backend such as Arq announces; `database_delivery` makes what an app needs.

`…_leases.py` keep leases from outside the worker (ADR 5). `fenceline.testing.delivery` has the tests that each delivery
must pass. A delivery carries and decides nothing; it does not know the engine.
"""
