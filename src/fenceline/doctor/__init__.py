"""`fenceline doctor`: what is wrong with a database and a fleet, and what to do about it.

`examine.py` runs the checks. A check is an async generator that takes a connection and yields `Finding`s
(`finding.py`). They are in `schema_checks.py`, `postgres_checks.py`, `storage_checks.py`, `queue_checks.py` and
`load_checks.py`; to add one, write it beside its kind and name it in `examine.py`.

Checks only read. The server (`GET /v1/admin/doctor`) and the command line show the same findings.
"""
