"""Runs jobs, whatever way they come. `engine.py` puts the parts together, one object each:

1. `claim_policy.py` decides how many jobs of which lane to ask for, and when to look again (`lane_state.py`).
2. `executor.py` starts the handlers of attempts that have a place (`places.py`, `handler_plan.py`, `handler_call.py`),
   ends them at their timeout or when they are cancelled. `running_attempt.py` is one at work, `running_board.py` shows
   them from outside.
3. `progress_reporter.py` sends log lines and progress of all attempts together, `starts.py` that handlers begin.
4. `finisher.py` sends ends together, as they come.

Everything goes through a `Delivery`, never straight to a database. Processes are made by `worker`.
"""
