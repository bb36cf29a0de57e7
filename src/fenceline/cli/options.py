"""Options that several commands share."""

import click

dsn_option = click.option(
    "--dsn", envvar="FENCELINE_DSN", help="PostgreSQL database; without one, an embedded one in ./.fenceline/."
)
