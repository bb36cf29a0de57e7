"""`fenceline runner`: runs jobs over HTTP only, with the same handlers and the same `ctx` as a worker."""
