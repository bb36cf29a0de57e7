"""Frozen values, free of I/O."""
