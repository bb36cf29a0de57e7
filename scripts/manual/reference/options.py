"""Every option: of decorators, of an enqueue, of a lane."""

import ast
import inspect
import textwrap
from dataclasses import dataclass
from typing import Any

import click
from scripts.manual.reference.markdown import code, table

from fenceline import After, EnqueueOptions, Retry, ScheduleSettings
from fenceline.cli.lanes import set_lane
from fenceline.client.job_decorator import BatchSettings, JobSettings


@dataclass(frozen=True)
class Attribute:
    """A field of a class, with the docstring that stands below it."""

    name: str
    type: str
    default: str
    text: str


def attributes(owner: type[Any]) -> list[Attribute]:
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - of a class
    found = []
    for field, after in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            default = "" if field.value is None else ast.unparse(field.value)
            found.append(Attribute(field.target.id, ast.unparse(field.annotation), default, docstring(after)))
    return found


def docstring(statement: ast.stmt | None) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return ""


def lane_settings() -> list[Attribute]:
    """The command line knows them all, with a word on each."""
    options = [option for option in set_lane.params if isinstance(option, click.Option) and not option.hidden]
    known = [option for option in options if option.help and option.name not in {"as_json", *SHARED}]
    return [Attribute(str(o.name), type_of(o), "", f"{o.help} (`{o.opts[0]}`)") for o in known]


def type_of(option: click.Option) -> str:
    """As it is typed at the command line."""
    choices = "|".join(option.type.choices) if isinstance(option.type, click.Choice) else "true|false"
    return option.metavar or choices


#: What every command that talks to a queue has besides.
SHARED = {"dsn", "url", "token", "token_file"}


def option_table(found: list[Attribute]) -> str:
    has_defaults = any(option.default for option in found)
    header = ["option", "type", *(["default"] if has_defaults else []), "what"]
    return table(
        header, [[code(o.name), code(o.type), *([code(o.default)] if has_defaults else []), o.text] for o in found]
    )


def page() -> str:
    return f"""# Options

The options of handlers, enqueues, schedules and lanes. All are optional.

## `@app.job(…)`

Defaults for all jobs of a kind.

{option_table(attributes(JobSettings))}
A handler that takes many jobs at a time has two more; see [Many jobs in one call](../guides/batch.md).

{option_table(attributes(BatchSettings))}
## An enqueue

`handler.options(…).enqueue(…)`, `app.enqueue(kind, args, …)`, `ctx.enqueue(…)`, `group.enqueue(…)`, and `each=` of `enqueue_many`. Over HTTP the
fields of `POST /v1/jobs` have the same names, and in SQL the members of `p_options`. Options of an enqueue override those of the decorator.

{option_table(attributes(EnqueueOptions))}
### `after`

{option_table(attributes(After))}
## `Retry(…)`

{option_table(attributes(Retry))}
## `@app.schedule(…)`

The same settings as `app.schedules.set(name, …)`; see [Schedules](../guides/schedules.md).

{option_table(attributes(ScheduleSettings))}
## A lane

`app.lanes.create(name, …)`, `app.lanes.set(name, …)`, `fenceline lanes set NAME …`, `PATCH /v1/admin/workers/lanes/{{name}}`. `None` (`none`) clears a
setting. A change takes effect with the next claim, on every worker.

{option_table(lane_settings())}
"""
