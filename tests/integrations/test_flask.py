"""examples/integrations/flask_shop.py, by Flask's test client."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integrations.examples import Shop, load_example, worker_in_thread
from tests.support.patience import seconds_left


@pytest.fixture
def example(database: str, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    shop.poll_never()
    example = load_example("flask_shop", database, monkeypatch)
    yield example
    example.engine.dispose()
    example.queue.sync.close()


def test_a_rollback_leaves_no_job(example: Any, shop: Shop) -> None:
    answer = example.web.test_client().post("/orders", json={"item": "nothing"})
    assert answer.status_code == 422
    assert shop.counts == (0, 0)


def test_a_commit_wakes_the_worker(example: Any, shop: Shop) -> None:
    client = example.web.test_client()
    with worker_in_thread(example.queue):
        shop.until_a_worker_waits()
        job = client.post("/orders", json={"item": "tea"}).get_json()["job"]
        assert example.queue.sync.jobs.handle(job).result(seconds_left()) == "receipt for tea"
    assert client.get(f"/jobs/{job}").get_json()["status"] == "succeeded"
    assert shop.counts == (1, 1)


def test_killed_connections_heal(example: Any, shop: Shop) -> None:
    client = example.web.test_client()
    with worker_in_thread(example.queue):
        for item in ("tea", "coffee"):
            job = client.post("/orders", json={"item": item}).get_json()["job"]
            assert example.queue.sync.jobs.handle(job).result(seconds_left()) == f"receipt for {item}"
            assert shop.kill_connections() > 0


@pytest.mark.parametrize("job", ["nonsense", "0000-0000-0000-000"])
def test_a_job_that_is_not_there_is_404(example: Any, job: str) -> None:
    for path in (f"/jobs/{job}", f"/jobs/{job}/stream"):
        assert example.web.test_client().get(path).status_code == 404


def test_progress_is_streamed(example: Any, shop: Shop) -> None:
    client = example.web.test_client()
    with worker_in_thread(example.queue):
        job = client.post("/orders", json={"item": "tea"}).get_json()["job"]
        answer = client.get(f"/jobs/{job}/stream")
        assert answer.mimetype == "text/event-stream"
        lines = answer.get_data(as_text=True).splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert events[-1]["status"] == "succeeded"
    assert any(event["progress"] for event in events)
