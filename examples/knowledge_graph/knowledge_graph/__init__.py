"""A knowledge graph that grows from texts: people ask for ingestion, others approve it, operators steer the lanes.

`application.py` has the app and its lanes; `interactive.py`, `maintenance.py` and `system.py` the kinds of each lane;
`graph.py` and `graph.sql` the graph; `jobs.py` all kinds together, for workers; `__main__.py` starts everything.
"""
