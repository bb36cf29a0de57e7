"""`python -m fenceline`: the same program as `fenceline`."""

from fenceline.cli import main

main(prog_name="fenceline")
