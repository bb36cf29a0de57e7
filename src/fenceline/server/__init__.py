"""The HTTP control plane: `create_app()` makes it, `fenceline server` runs it. Needs the extra `server`."""
