"""The dashboard: pages, and the sessions of the people before them.

It uses the HTTP API, with a session (`sessions.py`, `session_routes.py`, `cookie.py`) instead of a token; `origin.py`
refuses requests from other sites' pages. `assets/` is plain ES modules without a build: `pages/` has one per page.
"""
