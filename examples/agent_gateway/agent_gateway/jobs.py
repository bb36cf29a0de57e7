"""All handlers, for `fenceline worker agent_gateway.jobs:app`."""

from agent_gateway import analytics, dispatch, memories, orchestrate, providers, turns
from agent_gateway.app import app

__all__ = ["analytics", "app", "dispatch", "memories", "orchestrate", "providers", "turns"]
