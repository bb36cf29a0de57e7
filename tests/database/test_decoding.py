"""Records are read from JSON, whoever has written it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from fenceline.database.decoding import read_record
from fenceline.model.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    name: str
    status: Status
    at: datetime
    error: dict[str, Any] | None
    errors: list[Any] | None
    more: int | None = None


def told(**more: Any) -> dict[str, Any]:
    return {
        "name": "a", "status": "failed", "at": "2026-01-31T13:00:00+01:00", "error": {"code": "x"}, "errors": None
    } | more  # fmt: skip


def test_text_becomes_what_the_record_says() -> None:
    thing = read_record(Thing, told())
    assert thing.status is Status.FAILED
    assert thing.at == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert thing.more is None


def test_what_is_not_known_here_is_left_out() -> None:
    assert read_record(Thing, told(newer=1)) == read_record(Thing, told())


def test_values_of_another_type_than_usual_are_shown_as_they_are() -> None:
    thing = read_record(Thing, told(error="only text", errors={"$cut": {"bytes": 70_000}}))
    shown: tuple[Any, Any] = (thing.error, thing.errors)
    assert shown == ("only text", {"$cut": {"bytes": 70_000}})
    assert (thing.name, thing.status) == ("a", Status.FAILED)


def test_what_is_missing_is_refused() -> None:
    document = told()
    del document["name"]
    with pytest.raises(ValidationError, match="name"):
        read_record(Thing, document)
