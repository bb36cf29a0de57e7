"""`@shared_task`, and signatures by name: for modules that do not know their app."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

from fenceline.compat.celery.app import Celery, make_task
from fenceline.compat.celery.apps import apps
from fenceline.compat.celery.canvas import Signature
from fenceline.compat.celery.task import Task


@overload
def shared_task(function: Callable[..., Any], /) -> Task: ...
@overload
def shared_task(**options: Any) -> Callable[[Callable[..., Any]], Task]: ...
def shared_task(*args: Callable[..., Any], **options: Any) -> Any:
    """`@shared_task`, bare or with options: a task of every app of the program."""

    def share(function: Callable[..., Any]) -> Task:
        task = make_task(function, options, get_app=apps.current, main=None)
        apps.share(task)
        return task

    return share(*args) if args else share


def signature(
    name: str,
    args: Iterable[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    immutable: bool = False,
    **more: Any,
) -> Signature:
    """A signature of a task whose code need not be here."""
    app: Celery | None = more.pop("app", None)
    get_app = apps.current if app is None else lambda: app
    options = {**(more.pop("options", None) or {}), **more}
    return Signature(name, get_app, args=args, kwargs=kwargs, options=options, immutable=immutable)
