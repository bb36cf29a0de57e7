"""A mypy plugin: the context of a handler is none of the arguments of its jobs.

    [tool.mypy]
    plugins = ["fenceline.mypy"]

A handler may take a parameter `ctx`, which the worker fills. `ingest.enqueue(...)` has the handler's own signature, and
Python's typing can drop a first positional parameter from one, but no keyword parameter. This plugin drops the
parameter of that name from `Handler[P, R]`, wherever it stands.
"""

from collections.abc import Callable

from mypy.plugin import MethodContext, Plugin
from mypy.types import Instance, Parameters, Type, get_proper_type

CONTEXT = "ctx"
DECORATOR = "fenceline.client.handler.JobDecorator.__call__"


class FencelinePlugin(Plugin):
    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return _without_context if fullname == DECORATOR else None


def _without_context(context: MethodContext) -> Type:
    handler = get_proper_type(context.default_return_type)
    if not isinstance(handler, Instance) or not handler.args:
        return handler
    signature = get_proper_type(handler.args[0])
    if not isinstance(signature, Parameters) or CONTEXT not in signature.arg_names:
        return handler
    kept = [place for place, name in enumerate(signature.arg_names) if name != CONTEXT]
    signature = signature.copy_modified(
        arg_types=[signature.arg_types[place] for place in kept],
        arg_kinds=[signature.arg_kinds[place] for place in kept],
        arg_names=[signature.arg_names[place] for place in kept],
    )
    return handler.copy_modified(args=[signature, *handler.args[1:]])


def plugin(_version: str) -> type[Plugin]:
    return FencelinePlugin
