"""Producing and watching jobs, from async and from blocking code."""
