"""Processes that run jobs.

- `supervisor.py` is `fenceline worker`: it starts children (`child_process.py` → `child_main.py`, which runs an
  engine), keeps their leases (`lease_keeper.py`) and reports a death at once.
- `in_process.py` is `app.run_worker()`: the engine here, the lease kept by a small process (`lease_process.py` →
  `lease_main.py`). `inline.py` is `app.drain()`.
- `isolated_pool.py` → `isolated_main.py`: handlers with `isolated=True`, in processes that can be killed.
- `blockage.py` judges from outside whether a child's event loop is blocked.
- Around them: `own_process.py` (how a process begins and ends), `lifespan.py` (the app's startup and shutdown hooks),
  `worker_metrics.py`, `process_channel.py` (how two of these processes talk).

It builds on `engine` and `delivery`; it does not know `server`.
"""
