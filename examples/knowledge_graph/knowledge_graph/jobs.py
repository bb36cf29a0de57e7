"""All kinds: `fenceline worker knowledge_graph.jobs:app`."""

from knowledge_graph import interactive, maintenance, system
from knowledge_graph.application import app

__all__ = ["app", "interactive", "maintenance", "system"]
