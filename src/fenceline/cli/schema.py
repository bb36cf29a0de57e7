"""`fenceline migrate` and `fenceline sql`."""

import asyncio

import click

from fenceline.cli.options import dsn_option


@click.command()
@dsn_option
def migrate(dsn: str | None) -> None:
    """Bring the database's schema up to date. Harmless to repeat."""
    from fenceline.client.app import Fenceline  # noqa: PLC0415 - keeps `--help` quick

    async def run() -> None:
        async with Fenceline(dsn) as app:
            click.echo(await app.migrate())

    asyncio.run(run())


@click.command()
def sql() -> None:
    """Print the whole schema as SQL, to read it or to apply it with psql."""
    from fenceline.database.ddl import ddl  # noqa: PLC0415 - keeps `--help` quick

    click.echo(ddl())
