"""For tests of your own, on a real PostgreSQL. docs/guides/testing.md has tests to copy.

The fixture `fenceline_app` (`pytest_plugin.py`) gives each test an app, a `TestedApp` (`tested_app.py`), on a database
of its own (`databases.py`) whose clock it can move (`clock.py`). `enqueued.py` and `contexts.py` are two of its verbs.
`FakeCredentials` stands in for a provider; `drain(app)` runs what is due of any app, in blocking tests.
`delivery.py` has what every delivery must do; it and the fixture need pytest. There is no imitation of
the state machine here: jobs are real.
"""

from fenceline.testing.credentials import FakeCredentials
from fenceline.testing.tested_app import SyncTestedApp, TestedApp
from fenceline.testing.tested_app import drain_blocking as drain

__all__ = ["FakeCredentials", "SyncTestedApp", "TestedApp", "drain"]
