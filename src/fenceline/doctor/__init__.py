"""What is wrong with a database and a fleet, and what to do about it: `fenceline doctor`."""
