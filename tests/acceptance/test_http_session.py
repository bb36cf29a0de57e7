"""docs/guides/http.md: the session with curl, run by a shell as it is printed there, against a server of its own."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.acceptance.session import run_session, shell_blocks


def test_the_printed_session_runs() -> None:
    blocks = shell_blocks("guides/http.md")
    assert len(blocks) == 6
    output = run_session(blocks)
    assert re.search(r"is in \S*first-token$", output, re.MULTILINE)
    assert not re.search(r"platform_admin.*fl_\S{43}", output)
    assert "HTTP/1.1 202 Accepted" in output
    assert "\n202\n200\n" in output
    documents = list(read_documents(output))
    jobs = [document for document in documents if "kind" in document]
    assert [job["status"] for job in jobs] == ["awaiting_approval", "queued", "cancelled"]
    assert jobs[-1]["error"]["message"] == "wrong file"
    assert {job["created_by"] for job in jobs} == {"ann"}
    lists = [document["items"] for document in documents if "items" in document]
    assert [job["id"] for job in lists[0]] == [jobs[0]["id"]]
    events = [event["event"] for event in lists[1]]
    assert events[:2] == ["job.enqueue", "job.approve"]
    assert sorted(events[2:]) == ["job.cancel", "job.end"]  # of the same moment
    assert lists[2][0]["action"] == "lane.create"
    (bulk,) = [document for document in documents if "matched" in document]
    assert (bulk["matched"], bulk["changed"], bulk["dry_run"]) == (1, 1, True)
    (problem,) = [document for document in documents if "code" in document]
    assert (problem["code"], "holder" in problem) == ("resource_locked", True)


def read_documents(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object in the output; curl puts one behind the other."""
    decoder, place = json.JSONDecoder(), 0
    while (place := text.find("{", place)) >= 0:
        document, place = decoder.raw_decode(text, place)
        yield document
