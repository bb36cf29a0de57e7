"""`fenceline enqueue KIND` and `fenceline depth`: for cron jobs, scripts and autoscalers."""

import json
import sys
from datetime import datetime
from typing import Any

import click

from fenceline.cli.option_values import read_json, read_moment
from fenceline.cli.options import json_option, with_queue
from fenceline.cli.queue import Queue
from fenceline.errors import UnknownLane


def read_object(ctx: click.Context, param: click.Parameter, text: str) -> Any:
    """From a JSON object, or `-` for standard input."""
    if text == "-":
        if sys.stdin is None:
            raise click.BadParameter("standard input is closed: nothing can be read from it", param=param)
        text = sys.stdin.read()
    value = read_json(ctx, param, text)
    if not isinstance(value, dict):
        raise click.BadParameter('args are a JSON object, like \'{"path": "a"}\'', param=param)
    return value


def read_hash(ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
    """A hash, or a JSON object that names the job that has it."""
    return read_json(ctx, param, text) if text is not None and text.startswith("{") else text


def read_time(_ctx: click.Context, param: click.Parameter, text: str | None) -> datetime | None:
    moment = None if text is None else read_moment(text)
    if moment is None and text is not None:
        raise click.BadParameter(f"{text!r} is not a time: write it like 2026-12-31T00:00:00Z", param=param)
    return moment


def read_labels(_ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
    labels: dict[str, str] = {}
    for text in texts:
        name, colon, value = text.partition(":")
        if not colon or not name or not value:
            raise click.BadParameter(f"{text!r} is not a label: write it like project:x", param=param)
        labels[name] = value
    return labels or None


def read_runner(_ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> str | dict[str, str] | None:
    """A name, or labels with an equals sign each, as `fenceline runner --labels` takes them."""
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    labels = {name: value for name, equals, value in (text.partition("=") for text in texts) if name and equals}
    if len(labels) < len(texts):
        raise click.BadParameter("use one name, or labels like region=eu", param=param)
    return labels or None


@click.command()
@click.argument("kind")
@click.option(
    "--args", default="{}", metavar="JSON", callback=read_object, help="Args as a JSON object; - reads standard input."
)
@click.option("--lane", help="Lane to run in, instead of the kind's own.")
@click.option("--priority", type=int, help="Higher runs first.")
@click.option("--run-at", callback=read_time, metavar="MOMENT", help="Start no earlier than this.")
@click.option(
    "--run-in", type=click.FloatRange(min=0), metavar="SECONDS", help="Start at the earliest in this many seconds."
)
@click.option("--expires-at", callback=read_time, metavar="MOMENT", help="Cancelled if not started by then.")
@click.option("--dedupe-key", help="If a job with this key is waiting, return that one.")
@click.option(
    "--dedupe-until",
    type=click.Choice(["claimed", "finished"]),
    help="How long the dedupe key is taken: until the job is claimed (default) or finished.",
)
@click.option("--idempotency-key", help="The same command again within a day returns the first job.")
@click.option("--max-attempts", type=int, help="Attempts before the job fails permanently.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    callback=read_labels,
    metavar="NAME:VALUE",
    help="Label to find it by; repeatable.",
)
@click.option("--resource-lock", help="A lock that the job holds until it ends; an error if another job holds it.")
@click.option("--key", help="Jobs with the same key run one at a time.")
@click.option("--key-limit", type=int, help="How many jobs with the key may run at a time; default: 1.")
@click.option("--needs-approval", is_flag=True, default=None, help="Wait for `fenceline jobs approve`.")
@click.option("--snapshot", callback=read_json, metavar="JSON", help="Configuration to store with the job.")
@click.option(
    "--requires-hash",
    callback=read_hash,
    metavar="HASH",
    help="Fail unless the snapshot has this hash; '{\"job\": ID}' for that of an earlier job.",
)
@click.option("--after", multiple=True, metavar="ID", help="Wait for this job to succeed. May be repeated.")
@click.option("--identity", help="Whose credentials the job runs with.")
@click.option(
    "--runner",
    multiple=True,
    callback=read_runner,
    metavar="NAME",
    help="Worker or runner to run it, or NAME=VALUE for a label it must have; repeatable.",
)
@click.option("--tenant", help="The tenant of the job; over --url the token decides.")
@click.option("--timeout", type=float, help="Seconds that an attempt may take.")
@json_option
@with_queue
async def enqueue(queue: Queue, kind: str, args: dict[str, Any], as_json: bool, **options: Any) -> None:
    """Enqueue a job of KIND, and print its id."""
    given = {name: value for name, value in options.items() if value is not None and value != ()}
    if "after" in given:
        given["after"] = list(given["after"])
    job_id = await queue.enqueue(kind, args, given)
    click.echo(json.dumps({"id": job_id}) if as_json else job_id)


@click.command()
@click.option("--lane", help="Count only this lane; default: all lanes.")
@json_option
@with_queue
async def depth(queue: Queue, lane: str | None, as_json: bool) -> None:
    """Print how many jobs a worker could start now.

    One number, for autoscalers: queued jobs, due timers, attempts of dead workers. Drained lanes count 0.
    """
    found = await queue.system.depth(lane)
    if lane is not None and not found and lane not in {known.name for known in await queue.lanes.list()}:
        raise UnknownLane(f"lane {lane!r} does not exist")
    click.echo(json.dumps({"depth": found}) if as_json else found)
