"""Maintenance of Iceberg tables: one job per table at a time, one worker per job.

`catalog.py` has the tables, `actions.py` what can be done to one, `jobs.py` the job, `api.py` what is served over HTTP,
`scaler.py` what starts workers, `__main__.py` all of it together.
"""

#: Where its jobs are, and nothing else.
LANE = "tables"
