"""Args and results: Python values on one side, JSON on the other, by the handler's annotations."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from tests.client.conftest import Worker
from tests.support.patience import seconds_left

from fenceline import Context, Fenceline, FencelineError, InvalidArgs
from fenceline.client.arguments import MAX_DEPTH, Arguments
from fenceline.client.handler_parts import handler_parts
from fenceline.errors import InvalidJson, InvalidResult, TooLarge

if TYPE_CHECKING:
    from fenceline.nowhere import Missing  # type: ignore[import-not-found]  # known to checkers only: the point


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: float = 0.0
    tags: list[str] = field(default_factory=list)


class Order(BaseModel):
    number: int
    at: datetime
    price: Decimal
    place: Point | None = None


NOW = datetime(2026, 1, 31, 12, 30, 15, 123456, tzinfo=UTC)

ROUND_TRIPS: list[tuple[Any, Any]] = [
    (int, 2**70),
    (float, 0.1),
    (bool, True),
    (str, 'ä € 🎈 "quoted" \\ \n'),
    (datetime, NOW),
    (datetime, NOW.astimezone(timezone(timedelta(hours=-3, minutes=-30)))),
    (date, date(2026, 1, 31)),
    (time, time(1, 2, 3)),
    (timedelta, timedelta(days=2, microseconds=5)),
    (UUID, UUID(int=7)),
    (Decimal, Decimal("1.50")),
    (Colour, Colour.BLUE),
    (Level, Level.HIGH),
    (Literal["a", "b"], "b"),
    (int | None, None),
    (int | str, "5"),
    (Point, Point(1, 2.5, ["a"])),
    (Order, Order(number=1, at=NOW, price=Decimal("9.90"), place=Point(3))),
    (list[Order], [Order(number=1, at=NOW, price=Decimal(1))]),
    (dict[str, list[Point]], {"a": [Point(1)], "b": []}),
    (dict[UUID, date], {UUID(int=1): date(2026, 1, 1)}),
    (tuple[int, str], (1, "a")),
    (set[int], {1, 2, 3}),
    (Annotated[int, Field(ge=0)], 3),
    (Any, {"nested": [1, None, {"deep": True}]}),
]


def taking(annotation: Any) -> Arguments:
    async def handler(value): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202

    handler.__annotations__ = {"value": annotation, "return": annotation}
    return Arguments("kind", handler)


@pytest.mark.parametrize("annotation, value", ROUND_TRIPS)
def test_args_come_back_as_they_went(annotation: Any, value: Any) -> None:
    arguments = taking(annotation)

    back = arguments.decode(arguments.encode({"value": value}))["value"]

    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("annotation, value", ROUND_TRIPS)
def test_results_come_back_as_they_went(annotation: Any, value: Any) -> None:
    arguments = taking(annotation)

    text = arguments.encode_result(value)
    back = arguments.decode_result(None if text is None else json.loads(text))

    assert back == value
    assert type(back) is type(value)


@settings(max_examples=100, deadline=None)
@given(
    number=st.integers(),
    price=st.decimals(allow_nan=False, allow_infinity=False),
    at=st.datetimes(timezones=st.just(UTC)),
    key=st.uuids(),
    text=st.text(st.characters(codec="utf-8")),
    colour=st.sampled_from(Colour),
    points=st.lists(st.builds(Point, x=st.integers(), y=st.floats(allow_nan=False, allow_infinity=False))),
    free=st.recursive(
        st.none() | st.booleans() | st.text(st.characters(codec="utf-8")),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
        max_leaves=8,
    ),
)
def test_a_mixed_signature_round_trips(**values: Any) -> None:
    async def handler(  # noqa: PLR0917 - as mixed as can be
        number: int,
        price: Decimal,
        at: datetime,
        key: UUID,
        text: str,
        colour: Colour,
        points: list[Point],
        *,
        free: Any = None,
    ) -> None: ...

    arguments = Arguments("kind", handler)

    assert arguments.decode(arguments.encode(values)) == values


async def test_values_survive_the_database(app: Fenceline, worker: Worker) -> None:
    @app.job()
    async def handle(order: Order, key: UUID, colour: Colour, *, price: Decimal) -> Order:
        raise NotImplementedError

    order = Order(number=1, at=NOW, price=Decimal("9.90"))
    given_args = {"order": order, "key": uuid4(), "colour": Colour.RED, "price": Decimal("0.10")}
    job = await handle.enqueue(**given_args)  # type: ignore[arg-type]  # as the parameters say
    stored = await worker.connection.fetchval("select args::text from fenceline.job")
    await worker.run(job, result=json.loads(handler_parts(handle).arguments.encode_result(order) or ""))

    assert handler_parts(handle).arguments.decode(stored) == given_args
    assert await job.result(timeout=seconds_left()) == order


# Signatures ----------------------------------------------------------------------------------------------------


async def first_context(ctx: object, path: str, chunk: int = 5) -> None: ...
async def keyword_context(path: str, chunk: int = 5, *, ctx: object) -> None: ...
async def unknown_context(path: str, chunk: int = 5, *, ctx: "Missing") -> None: ...


@pytest.mark.parametrize("handler", [first_context, keyword_context, unknown_context])
def test_the_context_is_not_one_of_the_args(handler: Callable[..., Any]) -> None:
    arguments = Arguments("kind", handler)

    assert arguments.bind(("a", 7), {}) == {"path": "a", "chunk": 7}
    assert arguments.encode({"path": "a"}) == '{"path":"a"}'
    with pytest.raises(InvalidArgs, match="ctx"):
        arguments.encode({"path": "a", "ctx": None})


def test_unannotated_parameters_take_what_json_can_say() -> None:
    def handler(a, b=2): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202

    arguments = Arguments("kind", handler)

    assert arguments.decode(arguments.encode({"a": [1, "x", None]})) == {"a": [1, "x", None]}


def test_a_handler_without_parameters_takes_none() -> None:
    async def handler() -> None: ...

    arguments = Arguments("kind", handler)

    assert arguments.encode({}) == "{}"
    with pytest.raises(InvalidArgs, match="more"):
        arguments.encode({"more": 1})


def with_list(*paths: str) -> None: ...
def with_dictionary(**paths: str) -> None: ...
def with_positional_only(path: str, /) -> None: ...
async def with_positional_only_context(ctx: Context, /, path: str) -> None: ...


@pytest.mark.parametrize("handler", [with_list, with_dictionary, with_positional_only, with_positional_only_context])
def test_parameters_without_names_are_refused(handler: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="args are stored by name"):
        Fenceline("postgresql://unused").job()(handler)


def test_an_annotation_that_json_has_no_form_for_is_named() -> None:
    class Opaque: ...

    async def handler(thing: Opaque) -> None: ...

    with pytest.raises(TypeError, match=r"handler .*handler has no form in JSON.*Opaque"):
        Arguments("kind", handler).encode({"thing": Opaque()})


def test_an_annotation_that_cannot_be_read_is_named() -> None:
    async def handler(thing: "Missing") -> None: ...

    with pytest.raises(TypeError, match="name 'Missing' is not defined"):
        Arguments("kind", handler).encode({"thing": 1})


# What does not fit ---------------------------------------------------------------------------------------------


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


circle: list[Any] = []
circle.append(circle)

UNWRITABLE: dict[str, tuple[Any, str]] = {
    "NaN": (float("nan"), "JSON has no nan"),
    "infinity": ([1.0, float("inf")], "JSON has no inf"),
    "minus infinity": ({"a": {"b": float("-inf")}}, "JSON has no -inf"),
    "half a pair": ("half \ud800 a pair", "surrogates not allowed"),
    "object": (object(), "cannot be written as JSON"),
    "function": (lambda: None, "cannot be written as JSON"),
    "bytes": (b"\xff", "cannot be written as JSON"),
    "circle": (circle, "cannot be written as JSON"),
    "deep": (nested(MAX_DEPTH), "nested more than 64 levels"),
    "very deep": (nested(500), "cannot be written as JSON"),
}


@pytest.mark.parametrize("value, message", UNWRITABLE.values(), ids=UNWRITABLE)
@pytest.mark.parametrize("by_name", [False, True], ids=["by handler", "by name"])
async def test_what_json_cannot_say_is_refused_and_nothing_is_enqueued(
    app: Fenceline, worker: Worker, value: Any, message: str, *, by_name: bool
) -> None:
    @app.job()
    async def handle(value: Any) -> None: ...

    with pytest.raises(InvalidArgs, match=f"(?i){message}|cannot be written as JSON: JSON has no"):
        await (app.enqueue("another", {"value": value}) if by_name else handle.enqueue(value=value))
    assert await worker.count_jobs() == 0


def test_nan_hidden_in_a_model_is_refused_too() -> None:
    class Measured(BaseModel):
        value: float

    @dataclass
    class Also:
        value: float

    for annotation in (Measured, Also):
        with pytest.raises(InvalidArgs, match="JSON has no nan"):
            taking(annotation).encode({"value": annotation(value=float("nan"))})
        with pytest.raises(InvalidResult, match="JSON has no nan"):
            taking(annotation).encode_result(annotation(value=float("nan")))
    # A text that merely looks like it, and a null that is one, pass.
    assert taking(Any).encode({"value": ["NaN", "Infinity", None]}) == '{"value":["NaN","Infinity",null]}'


async def test_as_deep_as_allowed_is_accepted(app: Fenceline) -> None:
    deepest = nested(MAX_DEPTH - 1)

    assert (await (await app.enqueue("another", {"value": deepest})).get()).args == {"value": deepest}


async def test_many_brackets_side_by_side_are_not_deep(app: Fenceline) -> None:
    flat: list[Any] = [[] for _ in range(1000)] + ["[[[[{{{{"] * 100

    assert (await (await app.enqueue("another", {"value": flat})).get()).args == {"value": flat}


async def test_too_large_is_refused(app: Fenceline, worker: Worker) -> None:
    @app.job()
    async def handle(text: str) -> None: ...

    most = await worker.connection.fetchval("select max_args_bytes from fenceline.setting")
    for enqueue in (
        handle.enqueue(text="x" * most),
        handle.enqueue_many([{"text": "a"}, {"text": "x" * most}]),
        app.enqueue("another", {"text": "x" * most}),
    ):
        with pytest.raises(TooLarge):
            await enqueue
    assert await worker.count_jobs() == 0


async def test_a_zero_character_is_refused(app: Fenceline, worker: Worker) -> None:
    @app.job()
    async def handle(text: str) -> None: ...

    for enqueue in (
        handle.enqueue(text="a\x00b"),
        handle.enqueue_many([{"text": "a\x00b"}]),
        app.enqueue("another", {"a\x00b": 1}),
    ):
        with pytest.raises(InvalidJson):
            await enqueue
    # Six characters that only look like one.
    assert (await (await handle.enqueue(text="\\u0000")).get()).args == {"text": "\\u0000"}
    assert await worker.count_jobs() == 1


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((), {}, r"number: Field required"),
        ((), {"number": "x"}, r"number: Input should be a valid integer.* \(got 'x'\)"),
        ((), {"number": 1, "mroe": 2}, r"mroe: Extra inputs are not permitted"),
        ((), {"number": 1, "point": {"x": "no"}}, r"point\.x: Input should be a valid integer"),
        ((1, None, 3), {}, "too many positional arguments"),
        ((1,), {"number": 1}, "multiple values for argument 'number'"),
    ],
)
async def test_each_argument_that_does_not_fit_is_named(
    app: Fenceline, worker: Worker, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    @app.job()
    async def handle(number: int, point: Point | None = None) -> None: ...

    with pytest.raises(InvalidArgs, match=f"args of kind 'handle' do not fit its handler: .*{message}") as invalid:
        await handle.enqueue(*args, **kwargs)
    assert isinstance(invalid.value, FencelineError)
    assert invalid.value.code == "invalid_args"
    assert await worker.count_jobs() == 0


def test_a_result_that_does_not_fit_is_named() -> None:
    async def handler() -> int:
        raise NotImplementedError

    arguments = Arguments("kind", handler)

    with pytest.raises(InvalidResult, match="the result of kind 'kind' does not fit its handler"):
        arguments.encode_result("x")
    with pytest.raises(InvalidResult, match="valid integer"):
        arguments.decode_result("x")
    with pytest.raises(InvalidResult, match="surrogates"):
        taking(Any).encode_result("\ud800")
    assert arguments.encode_result(None) is None
    assert arguments.decode_result(None) is None


def test_the_context_comes_by_one_name(app: Fenceline) -> None:
    with pytest.raises(TypeError, match="takes its context as 'context': rename the parameter to 'ctx'"):

        @app.job()
        async def work(context: Context) -> None: ...


def test_annotations_may_name_what_is_defined_beside_the_handler(app: Fenceline) -> None:
    class Local(BaseModel):
        number: int

    @app.job()
    async def work(one: "Local", more: "list[Local] | None" = None) -> "Local":
        return one

    arguments = handler_parts(work).arguments
    assert arguments.decode(arguments.encode({"one": {"number": 1}, "more": [Local(number=2)]})) == {
        "one": Local(number=1),
        "more": [Local(number=2)],
    }
    assert arguments.decode_result({"number": 3}) == Local(number=3)
