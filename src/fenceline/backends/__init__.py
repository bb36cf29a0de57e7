"""Carry messages about jobs to workers, in lanes whose delivery says so: Arq on Redis, or your own backend.

`contract.py` says what a backend must do, `arq.py` is one, `chosen.py` finds the one that an app names. A message names
a job and nothing else: the job itself stays in PostgreSQL, and the receiver claims it there (`delivery/messages.py`).
No job is lost even if a backend loses everything.

It knows only `errors` and `model`.
"""
