"""For your own tests, on a real PostgreSQL. docs/guides/testing.md has tests to copy.

The fixture `fenceline_app` (`pytest_plugin.py`) gives each test a `TestedApp` (`tested_app.py`) with its own database
(`databases.py`), whose clock it can move (`clock.py`). `enqueued.py` and `contexts.py` are behind two of its methods.
`FakeCredentials` stands in for a provider. `drain(app)` runs the due jobs of any app in blocking tests. `delivery.py`
has the tests that every delivery must pass; it and the fixture need pytest. Nothing here imitates the state machine:
jobs are real.
"""

from fenceline.testing.credentials import FakeCredentials
from fenceline.testing.tested_app import SyncTestedApp, TestedApp
from fenceline.testing.tested_app import drain_blocking as drain

__all__ = ["FakeCredentials", "SyncTestedApp", "TestedApp", "drain"]
