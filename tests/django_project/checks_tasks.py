"""Tasks for checks.py."""

from typing import Any

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task


class Broken(Exception):
    pass


@task
def add(a: int, b: int) -> int:
    return a + b


@task
def fail(name: str) -> None:
    if name == "exit":
        raise SystemExit("enough")
    raise KeyError(name) if name == "built-in" else Broken("in two\nlines")


@task
def echo(name: str) -> Any:
    return (1, "two") if name == "tuple" else echo


@task(takes_context=True)
def attempt(context: Any) -> list[Any]:
    return [context.attempt, context.task_result.id]


@task
async def on_loop(word: str) -> str:
    return word.upper()
