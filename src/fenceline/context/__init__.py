"""What a handler knows and can do while it runs, wherever it runs: in a worker, in a process of its own, in a runner.

- `context.py`, `sync_context.py`: `ctx`, as users see it.
- `session.py`: the engine's side of the same attempt: what waits to be written, whether it must stop.
- `attempt.py`: the claim itself, what it starts with and how it ends; `preparation.py` does what comes before the
  handler, `endings.py` and `failure.py` turn what it returns or raises into an `Ending`.
- `attempt_api.py`: how an attempt reaches the state machine; over SQL here, over HTTP in `delivery/http_api.py`.
- The verbs: `steps.py`, `items.py`, `log_lines.py`, `lock_blocks.py`, `guards.py`, `children.py`, `transaction.py`.
- `log_output.py`: what a process writes to its standard error, with the job that it is at work on.
- Credentials never reach the database, a log or a terminal: `redaction.py`, `spellings.py`, `redacted_output.py`.

It may use `client`; it does not know who runs it (`engine`, `worker`, `server`).
"""
