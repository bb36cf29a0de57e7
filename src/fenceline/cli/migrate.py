"""`fenceline migrate` and `fenceline sql`."""

from typing import TYPE_CHECKING

import click

from fenceline.cli.options import with_app

if TYPE_CHECKING:
    from fenceline.app import Fenceline


@click.command()
@with_app
async def migrate(app: "Fenceline") -> None:
    """Bring the database's schema up to date.

    Harmless to repeat.
    """
    click.echo(await app.migrate())


@click.command()
def sql() -> None:
    """Print the whole schema as SQL.

    To read it, or to apply it with psql.
    """
    from fenceline.database.ddl import ddl

    click.echo(ddl())
