"""Values without I/O: what a job, a lane, a schedule, a worker is, and the rules that need nothing but the value
itself.

- Records that SQL answers with, the server sends and commands print: `job.py`, `records.py`, `stats.py`, `schedule.py`.
- Words with a fixed set of meanings: `status.py`, `outcome.py`.
- Forms: ids as people see them (`public_id.py`), cron and windows (`cron.py`, `window.py`), signatures of webhooks
  (`webhook_schemes.py`), encrypted values (`sealed.py`), text that is safe to print (`visible.py`).

Everything may import this package; it imports nothing of Fenceline, and no library but cronsim. Frozen dataclasses and
functions, nothing that waits.
"""
