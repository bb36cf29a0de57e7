"""The dashboard: pages, and the sessions of the people before them.

What it shows and does, it asks of the HTTP API, with a session (`sessions.py`, `session_routes.py`, `cookie.py`)
instead of a token; `origin.py` refuses what other sites' pages send. `assets/` is plain ES modules without a build:
`pages/` has one per page.
"""
