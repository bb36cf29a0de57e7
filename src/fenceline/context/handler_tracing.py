"""OpenTelemetry around the run of a handler: a span in a trace of its own, linked to the enqueue's; in it a span for
each step that runs, and an event for each line of its log.

Off, it costs one look into a dictionary. Needs the extra `otel`.
"""

import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from fenceline.client.enqueue_tracing import is_on
from fenceline.context.log_lines import current_session
from fenceline.context.redaction import redact
from fenceline.errors import Steering

if TYPE_CHECKING:
    from fenceline.context.context import Context

NO_SPAN: AbstractContextManager[None] = nullcontext()


async def in_span(context: "Context", call_next: Callable[[], Awaitable[Any]]) -> Any:
    """A middleware like any other."""
    from opentelemetry import trace
    from opentelemetry.context import Context as NoContext
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    links = []
    session = current_session.get()
    traceparent = None if session is None else session.attempt.details.get("traceparent")
    if isinstance(traceparent, str):
        sender = TraceContextTextMapPropagator().extract({"traceparent": traceparent}, context=NoContext())
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
            stacktrace = "".join(traceback.format_exception(error))
            told = {"exception.message": redact(str(error)), "exception.stacktrace": redact(stacktrace)}
            span.record_exception(error, attributes=told)
            span.set_status(trace.Status(trace.StatusCode.ERROR, f"{type(error).__name__}: {redact(str(error))}"))
            raise


def step_span(name: str, wanted: bool | None) -> AbstractContextManager[None]:  # noqa: FBT001 - as the app says it
    """A span around a step that runs; a skipped step has none. `wanted`: the app's setting for tracing."""
    return _span(name) if is_on(wanted) else NO_SPAN


@contextmanager
def _span(name: str) -> Iterator[None]:
    from opentelemetry import trace

    with trace.get_tracer("fenceline").start_as_current_span(
        f"step {name}", attributes={"fenceline.step": name}, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except Exception as error:
            span.set_status(trace.Status(trace.StatusCode.ERROR, f"{type(error).__name__}: {redact(str(error))}"))
            raise


def note_line(message: str, level: str, fields: Mapping[str, Any] | None, wanted: bool | None) -> None:  # noqa: FBT001 - as above
    """Add a line of a handler's log to the current span as an event. The caller has redacted it."""
    if not is_on(wanted):
        return
    from opentelemetry import trace

    more = {f"fenceline.field.{name}": str(value) for name, value in (fields or {}).items()}
    told = {"fenceline.message": message, "fenceline.level": level, **more}
    trace.get_current_span().add_event("fenceline.log", told)
