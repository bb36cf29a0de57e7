"""What is wrong with a database and a fleet, and what to do about it: `fenceline doctor`."""

from fenceline.doctor.examine import examine
from fenceline.doctor.finding import Finding, Limits

__all__ = ["Finding", "Limits", "examine"]
