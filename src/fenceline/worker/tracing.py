"""OpenTelemetry around the run of a handler: a span in a trace of its own, linked to the enqueue's. Extra `otel`."""

import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from fenceline.client.app import Fenceline, Middleware
from fenceline.client.tracing import is_on
from fenceline.context.context import Context
from fenceline.context.secrets import redact
from fenceline.errors import Steering


def all_middlewares(app: Fenceline) -> list[Middleware]:
    """The app's middleware, inside a span if the program has configured tracing by now."""
    return [in_span, *app.middlewares] if is_on(app.tracing) else list(app.middlewares)


async def in_span(context: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    """A middleware like any other."""
    from opentelemetry import trace  # noqa: PLC0415 - an extra
    from opentelemetry.context import Context as NoContext  # noqa: PLC0415 - as above
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415 - as above

    links = []
    if context.traceparent is not None:
        sender = TraceContextTextMapPropagator().extract({"traceparent": context.traceparent}, context=NoContext())
        origin = trace.get_current_span(sender).get_span_context()
        if origin.is_valid:
            links.append(trace.Link(origin))
    attributes: dict[str, str | int] = {
        "messaging.system": "fenceline",
        "messaging.operation.type": "process",
        "messaging.destination.name": context.kind,
        "messaging.message.id": context.job,
        "fenceline.attempt": context.attempt,
        "fenceline.tenant": context.tenant,
    }
    tracer = trace.get_tracer("fenceline")
    with tracer.start_as_current_span(
        f"process {context.kind}",
        context=NoContext(),
        kind=trace.SpanKind.CONSUMER,
        links=links,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            return await call_next()
        except Steering as steering:
            span.set_attribute("fenceline.steering", type(steering).__name__)
            raise
        except Exception as error:
            told = {"exception.message": redact(str(error)), "exception.stacktrace": redact(_stacktrace(error))}
            span.record_exception(error, attributes=told)
            span.set_status(trace.Status(trace.StatusCode.ERROR, f"{type(error).__name__}: {redact(str(error))}"))
            raise


def _stacktrace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
