"""What producers use: the app, its handlers, handles to jobs, and the verbs of operators, async and blocking.

- `app.py`: `App`, where handlers are registered (`job_decorator.py`, `handler.py`, `schedule_decorator.py`);
  `app_verbs.py`: what it shares with `app.sync`; `application.py` finds the app that a command names.
- `enqueuer.py`: how jobs of a kind are enqueued; `arguments.py` checks args against the handler's signature,
  `enqueue_options.py` the options; `groups.py` enqueues several together.
- `job.py`, `jobs.py`, `lanes.py`, `schedules.py`, `stats.py`, `system.py`: what can be done with each; `verbs.py` is
  their base.
- `watching.py`: live events from the database; `server_events.py`: the same over HTTP.
- `sync_*.py`: the blocking twins, generated from these by `scripts/generate_sync.py`; only `sync_app.py` and
  `sync_database.py` are written by hand.

It builds on `runtime` and knows nothing of contexts, engines, workers or servers. `fenceline.app.Fenceline`, the class
that users see, adds to `App` what runs jobs.
"""
