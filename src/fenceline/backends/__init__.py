"""What carries messages about jobs to workers, where a lane's delivery says so: Arq on Redis, or a backend of yours.

`contract.py` says what a backend can do, `arq.py` does it, `chosen.py` finds the one that an app names. A message names
a job and nothing else: the job itself stays in PostgreSQL, and whoever gets the message claims it there
(`delivery/messages.py`). Nothing is lost when a backend is.

It knows `errors` and `model` only.
"""
