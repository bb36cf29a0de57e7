"""What clients, workers and servers share while they run: the way to the database, and the upkeep they take turns at.

- `database.py`: `Database` sends calls, again where that is safe, over a pool (`pool.py`) of sessions set up alike
  (`session_settings.py`). `connections.py` runs a call on a connection that a user brought, `reconnecting.py` on one
  that reconnects until the call is answered.
- `listener.py` hears notifications, `alarms.py` slows down the reaction to a flood of them, `outcome_waiter.py` waits
  for jobs to end, `lock_keeper.py` keeps the locks of `app.lock`.
- `http_client.py` sends the requests of runners and commands to a server, with their token (`http_token.py`) and
  certificates (`http_tls.py`). `outage.py` logs that a connection is lost, and that it is back.
- `maintenance.py` does what is due, in every worker and server: sweeps, timers, `scheduler.py`, `retention.py`;
  `sender.py` sends messages to a backend.

Each loop has `run` and `run_once`, and tests call the latter. It knows `database` and what is below, no app or handler.
"""
