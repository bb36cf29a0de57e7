"""What a handler asks for reaches a server, whatever it is."""

import json

import pytest

from fenceline.database.calls.context import OPERATIONS
from fenceline.delivery.http_api import request_of

VALUES = {
    "name": "a/b",
    "names": ["load"],
    "state": '{"row": 1}',
    "progress": '{"done": 1, "more": "x"}',
    "args": ["{}"],
    "kind": "work",
    "request_id": "r",
    "owner": "o",
    "snapshot": '{"size": 1}',
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_is_a_request(operation: str) -> None:
    method, path, body = request_of(operation, VALUES)
    assert method in {"GET", "PUT", "POST", "DELETE"}
    assert " " not in path
    if body is not None:
        assert isinstance(json.loads(body), dict)


def test_values_that_are_json_go_in_as_they_are() -> None:
    assert request_of("save_checkpoint", VALUES) == ("PUT", "checkpoint", '{"state": {"row": 1}}')
    assert request_of("snapshot_hash", {"snapshot": "[1]"}) == ("POST", "snapshot-hash", '{"snapshot": [1]}')
    assert request_of("record_step", VALUES)[1] == "steps/a%2Fb"


def test_an_operation_that_is_unknown() -> None:
    with pytest.raises(ValueError, match="operation 'fly' is unknown"):
        request_of("fly", {})
