"""What clients, workers and servers have in common once they run: the way to the database, and what is done in turns.

- `database.py`: `Database` sends calls, again where that is safe, over a pool (`pool.py`) of sessions set up in one way
  (`session_settings.py`); `connections.py` runs a call on a connection that a user brought, `reconnecting.py` on one
  that comes back until it is answered.
- `listener.py` hears notifications, `alarms.py` slows down whoever follows a flood of them, `outcome_waiter.py` waits
  for jobs to end.
- `http_client.py` sends requests to a server, of runners and of commands, with their token (`http_token.py`) and
  certificates (`http_tls.py`). `outage.py` tells of a connection that is lost, and of its return.
- `maintenance.py` does what is due, in every worker and server: sweeps, timers, `scheduler.py`, `retention.py`;
  `sender.py` sends messages to a backend.

Each loop has `run` and `run_once`, and tests call the latter. It knows `database` and what is below, no app or handler.
"""
