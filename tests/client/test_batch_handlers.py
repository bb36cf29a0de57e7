"""Declaring a handler that takes many jobs at a time, and enqueueing its jobs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NotRequired

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from fenceline import BatchContext, BatchItem, Context, Fenceline, InvalidArgs, SyncContext
from fenceline.client.handler_parts import handler_parts


@dataclass
class Event:
    name: str
    at: int = 0
    tags: list[str] = field(default_factory=list)


class Model(BaseModel):
    name: str = Field(min_length=2)
    at: int = 0


class Typed(TypedDict):
    name: str
    at: NotRequired[int]


@pytest.fixture
def app() -> Fenceline:
    return Fenceline("postgresql://nowhere")


def declared(app: Fenceline, item: Any) -> Any:
    async def write(jobs: Any) -> None: ...

    write.__annotations__["jobs"] = list[BatchItem[item]]
    return handler_parts(app.job(batch=10)(write)).arguments


@pytest.mark.parametrize("item", [Event, Model, Typed])
def test_the_fields_of_the_items_type_are_the_args(app: Fenceline, item: Any) -> None:
    arguments = declared(app, item)
    assert arguments.signature["takes"]["name"] is True
    assert arguments.signature["takes"]["at"] is False
    for given in (arguments.bind((), {"name": "view"}), arguments.bind((item(name="view"),), {})):
        decoded = arguments.decode(arguments.encode(given))
        assert (decoded["name"] if item is Typed else decoded.name) == "view"
    with pytest.raises(InvalidArgs, match="name"):
        arguments.encode({"at": 5})
    with pytest.raises(InvalidArgs, match="at"):
        arguments.encode({"name": "view", "at": "soon"})


@pytest.mark.parametrize("item", [Event, Typed])
def test_a_misspelled_arg_is_refused(app: Fenceline, item: Any) -> None:
    with pytest.raises(InvalidArgs, match="tgas"):
        declared(app, item).encode({"name": "view", "tgas": []})
    with pytest.raises(InvalidArgs, match="tgas") as refused:
        declared(Fenceline("postgresql://nowhere"), item).decode('{"name": "view", "tgas": []}')
    assert refused.value.of_claimed_job, "another version of the handler may take it"


@pytest.mark.parametrize("item", [Any, dict[str, int]])
def test_items_may_be_plain_dicts(app: Fenceline, item: Any) -> None:
    arguments = declared(app, item)
    assert arguments.decode(arguments.encode({"a": 1})) == {"a": 1}
    assert arguments.signature == {"takes": {}, "extra": True}


async def takes_int(jobs: list[BatchItem[int]]) -> None: ...
async def takes_event(jobs: list[Event]) -> None: ...
async def takes_two(jobs: list[BatchItem[Event]], more: int) -> None: ...
async def takes_nothing() -> None: ...
async def takes_context(ctx: Context, jobs: list[BatchItem[Event]]) -> None: ...
def takes_blocking_context(ctx: SyncContext, jobs: list[BatchItem[Event]]) -> None: ...
async def names_it_otherwise(context: BatchContext, jobs: list[BatchItem[Event]]) -> None: ...


@pytest.mark.parametrize(
    "function, why",
    [
        (takes_int, "args are stored by name"),
        (takes_event, "not a list of its jobs"),
        (takes_two, "it takes one parameter"),
        (takes_nothing, "it takes one parameter"),
        (takes_context, "use BatchContext. Steps, waits and locks are for"),
        (takes_blocking_context, "use SyncBatchContext"),
        (names_it_otherwise, "rename the parameter"),
    ],
)
def test_a_signature_that_cannot_work_is_refused(app: Fenceline, function: Callable[..., Any], why: str) -> None:
    with pytest.raises(TypeError, match=why):
        app.job(batch=10)(function)


@pytest.mark.parametrize(
    "settings, why",
    [
        ({"batch": 0}, "1 to 1000"),
        ({"batch": 1001}, "1 to 1000"),
        ({"batch": 10, "batch_wait": -1}, "0 to 60"),
        ({"batch": 10, "isolated": True}, "isolated=True exclude each other"),
        ({"batch": 10, "validate": len}, "validate= exclude each other"),
        ({"batch_wait": 1.0}, "batch_wait= needs batch="),
    ],
)
def test_settings_that_cannot_work_are_refused(app: Fenceline, settings: dict[str, Any], why: str) -> None:
    with pytest.raises((TypeError, ValueError), match=why):
        app.job(**settings)


def test_a_batch_has_no_finalizer_and_no_snapshot(app: Fenceline) -> None:
    @app.job(batch=10)
    async def write(jobs: list[BatchItem[Event]]) -> None: ...

    with pytest.raises(TypeError, match="can have no finalizer"):
        write.finalizer(len)
    with pytest.raises(TypeError, match="can have no snapshot"):
        write.snapshot(len)


async def test_jobs_are_enqueued_as_values_or_by_name(database: str) -> None:
    async with Fenceline(database) as app:

        @app.job(batch=10)
        async def write(jobs: list[BatchItem[Event]]) -> None: ...

        jobs = [
            await write.enqueue(Event("a", tags=["x"])),
            await app.enqueue(write, {"name": "a", "tags": ["x"]}),
            *await write.enqueue_many([Event("a", tags=["x"]), {"name": "a", "tags": ["x"]}]),
            await write.options(priority=3).enqueue(Event("a", tags=["x"])),
        ]
        assert len(jobs) == 5
        assert [(await job.get()).args for job in jobs] == [{"name": "a", "at": 0, "tags": ["x"]}] * 5
        assert (await jobs[4].get()).priority == 3
        with pytest.raises(InvalidArgs, match="one value, or its fields by name"):
            await write.enqueue(Event("a"), Event("b"))  # type: ignore[call-arg]  # that is the mistake
