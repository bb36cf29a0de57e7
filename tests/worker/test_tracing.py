"""Spans at the enqueue and around the run, linked."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.conftest import Connect
from tests.support.patience import seconds_left
from tests.worker.fleet import until
from tests.worker.in_process_worker import ended, running

from fenceline import Context, Fenceline, RefusedError, Retry, SyncContext
from fenceline.client.enqueue_tracing import NO_TRACE, enqueue_span, is_tracing
from fenceline.errors import Snooze


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What a program that has configured the SDK would export."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # The API lets a provider be set once per process; a test needs it for itself.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


def by_name(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


@pytest.mark.parametrize("kind", ["inline", "threaded"])
async def test_the_run_is_linked_to_the_enqueue(database: str, spans: InMemorySpanExporter, kind: str) -> None:
    app = Fenceline(database)

    @app.job()
    async def inline() -> None:
        trace.get_tracer("test").start_span("inside").end()

    @app.job()
    def threaded() -> None:
        trace.get_tracer("test").start_span("inside").end()

    async with running(app):
        with trace.get_tracer("test").start_as_current_span("request"):
            job = await app.enqueue(kind)
        await job.wait(timeout=seconds_left())
    found = by_name(spans)
    sent, run, inside = found[f"send {kind}"], found[f"process {kind}"], found["inside"]
    assert sent.parent is not None
    assert sent.parent.span_id == found["request"].context.span_id
    assert [link.context.span_id for link in run.links] == [sent.context.span_id]
    assert run.links[0].context.trace_id == sent.context.trace_id
    assert run.parent is None
    assert inside.parent is not None
    assert inside.parent.span_id == run.context.span_id
    assert run.attributes is not None
    assert (run.attributes["messaging.message.id"], run.attributes["fenceline.attempt"]) == (job.id, 1)


async def test_the_blocking_client_and_bulk_enqueues_are_traced(database: str, spans: InMemorySpanExporter) -> None:
    app = Fenceline(database)

    @app.job()
    async def work(number: int) -> None: ...

    jobs = await work.enqueue_many([{"number": number} for number in range(3)])
    await asyncio.to_thread(work.sync.enqueue, number=4)
    async with running(app):
        for job in jobs:
            await job.wait(timeout=seconds_left())
    finished = spans.get_finished_spans()
    bulk = next(span for span in finished if span.name == "send work")
    assert bulk.attributes is not None
    assert bulk.attributes["messaging.batch.message_count"] == 3
    linked = [span.links[0].context.span_id for span in finished if span.name == "process work"]
    assert linked.count(bulk.context.span_id) == 3
    assert len([span for span in finished if span.name == "send work"]) == 2


async def test_a_failure_marks_the_span_and_steering_does_not(database: str, spans: InMemorySpanExporter) -> None:
    app = Fenceline(database)

    @app.job(retry=Retry(max_attempts=1))
    async def failing() -> None:
        raise LookupError("not there")

    @app.job()
    async def snoozing(ctx: Any) -> None:
        if ctx.token % 2**32 == 1:
            raise Snooze(0)

    async with running(app):
        await ended(await app.enqueue("failing"))
        await ended(await app.enqueue("snoozing"))
    found = by_name(spans)
    assert found["process failing"].status.status_code is trace.StatusCode.ERROR
    assert found["process failing"].events[0].name == "exception"
    assert found["process snoozing"].status.status_code is trace.StatusCode.UNSET


async def test_tracing_can_be_declined(database: str, spans: InMemorySpanExporter, connect: Connect) -> None:
    app = Fenceline(database, tracing=False)

    @app.job()
    async def work() -> None: ...

    async with running(app):
        await (await app.enqueue("work")).wait(timeout=seconds_left())
    assert spans.get_finished_spans() == ()
    assert await (await connect()).fetchval("select traceparent from fenceline.job") is None


def test_without_an_sdk_nothing_is_done() -> None:
    assert not is_tracing()
    assert enqueue_span("work", None) is NO_TRACE


async def test_traceparent_is_no_option_of_users(database: str) -> None:
    app = Fenceline(database)
    with pytest.raises(RefusedError, match="unknown option traceparent"):
        await app.enqueue("work", traceparent="00-1")  # type: ignore[call-overload]  # the point
    await app.close()


@pytest.mark.parametrize("kind", ["parent", "blocking_parent"])
async def test_steps_log_lines_and_children_belong_to_the_run(
    database: str, spans: InMemorySpanExporter, kind: str
) -> None:
    app = Fenceline(database)

    @app.job(retry=Retry(max_attempts=1))
    async def parent(ctx: Context) -> None:
        ctx.log("begun", shelf=3)
        await ctx.step("load", asyncio.sleep, 0)
        await ctx.enqueue("child")

    @app.job(retry=Retry(max_attempts=1))
    def blocking_parent(ctx: SyncContext) -> None:
        ctx.log("begun", shelf=3)
        ctx.step("load", str, 1)
        ctx.enqueue("child")

    @app.job
    async def child() -> None: ...

    async with running(app):
        assert (await ended(await app.enqueue(kind))).status == "succeeded"

        async def has_run() -> bool:
            return "process child" in by_name(spans)

        await until(has_run, "the child has run")
    found = by_name(spans)
    run, step, sent = found[f"process {kind}"], found["step load"], found["send child"]
    assert step.parent is not None
    assert step.parent.span_id == run.context.span_id
    assert (step.attributes or {})["fenceline.step"] == "load"
    (event,) = [event for event in run.events if event.name == "fenceline.log"]
    assert dict(event.attributes or {}) == {
        "fenceline.message": "begun",
        "fenceline.level": "info",
        "fenceline.field.shelf": "3",
    }
    assert sent.parent is not None
    assert sent.parent.span_id == run.context.span_id
    assert [link.context.span_id for link in found["process child"].links] == [sent.context.span_id]


async def test_a_step_that_fails_is_an_error_in_its_span(database: str, spans: InMemorySpanExporter) -> None:
    app = Fenceline(database)

    @app.job(retry=Retry(max_attempts=1))
    async def work(ctx: Context) -> None:
        def load() -> None:
            raise OSError("no disk")

        await ctx.step("load", load)

    async with running(app):
        assert (await ended(await app.enqueue("work"))).status == "failed"
    status = by_name(spans)["step load"].status
    assert (status.status_code, status.description) == (trace.StatusCode.ERROR, "OSError: no disk")
