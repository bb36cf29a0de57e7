"""What is sealed can be opened with the key, says nothing without it, and everything else stays as it is."""

import json
from typing import Any

import pytest
from cryptography.fernet import Fernet, MultiFernet
from hypothesis import given
from hypothesis import strategies as st

from fenceline.model.sealed import (
    MAX_MESSAGE_BYTES,
    each,
    is_sealed,
    open_value,
    seal_error,
    seal_items,
    seal_json,
    seal_lines,
    seal_specs,
    seal_text,
)

CODEC = Fernet(Fernet.generate_key())
OTHER = Fernet(Fernet.generate_key())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=8,
)


def sealed(seal: Any, value: Any) -> str:
    text = seal(CODEC, json.dumps(value))
    assert isinstance(text, str)
    return text


@given(value=JSON)
def test_a_value_comes_back_as_text_and_as_an_object(value: Any) -> None:
    text = sealed(seal_json, value)
    assert is_sealed(text)
    assert json.loads(open_value(CODEC, text)) == value
    assert open_value(CODEC, json.loads(text)) == value


@given(message=st.text(st.characters(exclude_categories=["Cs"]), max_size=200), fields=JSON)
def test_lines_of_a_log_come_back(message: str, fields: Any) -> None:
    line = {"message": message, "level": "info", "fields": fields}
    text = sealed(seal_lines, [line])
    assert json.loads(open_value(CODEC, text)) == [line]
    assert open_value(CODEC, json.loads(text)) == [line]


def test_a_long_message_is_cut_before_it_is_sealed() -> None:
    text = sealed(seal_lines, [{"message": "ä" * 10_000}])
    [line] = json.loads(text)
    assert len(line["message"]) < 8192, "or the database cuts the token, and nobody can open it"
    [opened] = json.loads(open_value(CODEC, text))
    assert opened["message"].endswith(" … [cut]")
    assert len(opened["message"]) > MAX_MESSAGE_BYTES / 2


def test_an_error_keeps_its_code_and_type_in_sight() -> None:
    error = {"code": "error", "type": "ValueError", "message": "wrong secret", "traceback": "line 1", "more": None}
    text = sealed(seal_error, error)
    assert "secret" not in text
    assert json.loads(text)["code"] == "error"
    assert json.loads(text)["type"] == "ValueError"
    assert json.loads(open_value(CODEC, text)) == error


def test_errors_and_args_of_several_jobs_come_back() -> None:
    assert json.loads(open_value(CODEC, sealed(seal_items, ["a", {"b": 1}]))) == ["a", {"b": 1}]
    specs = [{"kind": "a", "args": {"x": "secret"}, "key": "k"}, {"kind": "b"}]
    text = sealed(seal_specs, specs)
    assert "secret" not in text
    assert '"key": "k"' in text
    assert json.loads(open_value(CODEC, text)) == specs


@pytest.mark.parametrize(
    "seal", [seal_json, seal_text, seal_items, seal_error, seal_lines, seal_specs, each(seal_json)]
)
def test_nothing_stays_nothing(seal: Any) -> None:
    assert seal(CODEC, None) is None
    assert each(seal)(CODEC, [None]) == [None]


@pytest.mark.parametrize(
    "value",
    [
        '{"a": 1.50, "b": 1e999999, "c": "sealed: no"}',  # numbers as they were written, whatever Python makes of them
        'a text with {"$sealed": "no token at all"}',
        '{"$sealed": 7}',
        "sealed:not-a-token",
        None,
        7,
        b"sealed:bytes",
    ],
)
def test_what_is_not_sealed_stays_as_it_is(value: Any) -> None:
    assert open_value(CODEC, value) == value


def test_numbers_beside_a_sealed_value_stay_as_they_were_written() -> None:
    beside = f'{{"a": 1.50, "args": {sealed(seal_json, {"x": 1})}, "b": 1e999999}}'
    assert open_value(CODEC, beside) == '{"a": 1.50, "args": {"x": 1}, "b": 1e999999}'


def test_what_another_key_has_sealed_is_shown_as_it_stands() -> None:
    text = sealed(seal_json, {"x": 1})
    assert open_value(OTHER, text) == text
    assert open_value(OTHER, json.loads(text)) == json.loads(text)
    secret = seal_text(CODEC, "x")
    assert open_value(OTHER, secret) == secret
    assert open_value(MultiFernet([OTHER, CODEC]), text) == '{"x": 1}'


def test_a_token_within_a_text_is_not_opened() -> None:
    """A value that quotes a token, as a log line may, is a text and stays one."""
    token = sealed(seal_json, {"x": 1})
    for quoting in (json.dumps({"message": token}), json.dumps(f"x {token}")):
        assert open_value(CODEC, quoting) == quoting


def test_what_was_opened_is_not_opened_again() -> None:
    """Else whoever may write a value could have the program open what somebody else has sealed."""
    stolen = json.loads(sealed(seal_json, "of another"))
    assert json.loads(open_value(CODEC, sealed(seal_json, {"mine": stolen}))) == {"mine": stolen}
