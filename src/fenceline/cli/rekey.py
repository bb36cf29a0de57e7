"""`fenceline rekey`."""

import click

from fenceline.cli.options import with_queue
from fenceline.cli.queue import Queue


def print_new_key(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    try:
        from cryptography.fernet import Fernet
    except ImportError as error:
        raise click.ClickException("keys need cryptography: pip install 'fenceline[encryption]'") from error
    click.echo(Fernet.generate_key().decode())
    ctx.exit()


@click.command()
@click.option(
    "--new-key",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_new_key,
    help="Print a new key, and stop.",
)
@with_queue
async def rekey(queue: Queue) -> None:
    """Re-encrypt everything with the newest key.

    A worker does it as a job: its id is printed, and `fenceline jobs show ID` tells how far it is. Before that, put the
    new key first into $FENCELINE_KEYS of every worker, server and producer, the old one behind it, and restart them.
    When the job has succeeded, the old key can go.
    """
    click.echo(await queue.rekey())
