"""A span of OpenTelemetry around an enqueue, whose context travels with the job. Needs the extra `otel`.

Without an SDK configured by the program it is off, and costs one dictionary lookup.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

#: When tracing is off. The value of a span is the W3C trace context for the job, or None.
NO_TRACE: AbstractContextManager[str | None] = nullcontext(None)


def is_tracing() -> bool:
    """Whether the program has configured an OpenTelemetry SDK."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return False
    # The API's own providers do nothing; those of the SDK and of vendors are other classes.
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider | trace.NoOpTracerProvider)


def is_on(wanted: bool | None) -> bool:  # noqa: FBT001 - the state itself
    """`wanted`: the app's setting; None: whether the program has configured an SDK."""
    return is_tracing() if wanted is None else wanted


def enqueue_span(kind: str, wanted: bool | None, count: int = 1) -> AbstractContextManager[str | None]:  # noqa: FBT001 - as above
    """A span around an enqueue; its value is the `traceparent` for the job."""
    return _span(kind, count) if is_on(wanted) else NO_TRACE


@contextmanager
def _span(kind: str, count: int) -> Iterator[str | None]:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    attributes: dict[str, str | int] = {
        "messaging.system": "fenceline",
        "messaging.operation.type": "send",
        "messaging.destination.name": kind,
        "messaging.batch.message_count": count,
    }
    tracer = trace.get_tracer("fenceline")
    with tracer.start_as_current_span(f"send {kind}", kind=trace.SpanKind.PRODUCER, attributes=attributes):
        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier)
        yield carrier.get("traceparent")
