"""Everything about PostgreSQL: which statements there are, how its schema is brought up to date, where it is.

- `call.py` and `calls/`: an operation of the state machine as a value (`Call`: SQL text, parameters, decoder). No I/O;
  `runtime/database.py` or a connection of the user's runs it.
- `migrate.py`: brings the schema up to date while programs use it. It reads `sql/` (`schema_files.py`), looks at what
  is there (`schema_state.py`), replaces code (`replace_code.py`, `retire.py`) and grants (`grants.py`).
- `dsn.py`: which database it is; `embedded.py` and its neighbours: the PostgreSQL that comes with the package.
- `failures.py`: what an error of a driver means for the sender of the statement.

It knows `errors` and `model`, and nothing of clients, workers or servers. Rules about jobs are SQL, not here.
"""
