"""What is wrong with a database and a fleet, and what to do about it: `fenceline doctor`.

`examine.py` runs the checks and orders what they find. A check is an async function that takes a way to call the
database and yields `Finding`s (`finding.py`): `schema_checks.py`, `postgres_checks.py`, `storage_checks.py`,
`queue_checks.py`, `load_checks.py`. To add one, write it beside its kind and name it in `examine.py`.

Checks only read. The server (`GET /v1/admin/doctor`) and the command line show the same findings.
"""
