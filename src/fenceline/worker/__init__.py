"""Running jobs: a supervisor that keeps leases, and children that claim, execute and finish."""
