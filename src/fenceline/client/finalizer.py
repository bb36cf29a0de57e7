"""`@handler.finalizer`: turns a result into application state, in the transaction that ends the job."""

import inspect
from collections.abc import Callable
from typing import Any

#: The parameters that a finalizer may have.
PARAMETERS = ("conn", "connection", "ctx", "job", "result", "args")


class Finalizer:
    """A function that gets what its parameters name."""

    def __init__(self, kind: str, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters
        for parameter in parameters.values():
            by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if parameter.name not in PARAMETERS or not by_name:
                raise TypeError(
                    f"the finalizer of {kind!r} has a parameter {str(parameter)!r}: it is given what its parameters "
                    f"name, which can be {', '.join(PARAMETERS)}"
                )
        self.is_async = inspect.iscoroutinefunction(function)
        self._function = function
        self._wants = tuple(parameters)

    def __call__(self, *, connection: Any, ctx: Any, result: Any) -> Any:
        values = {"conn": connection, "connection": connection, "ctx": ctx, "job": ctx.job, "result": result}
        if "args" in self._wants:
            values["args"] = ctx.job.args
        return self._function(**{name: values[name] for name in self._wants})
