"""What a test does to the queue from outside, over the same API."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from tests.dashboard.site import Site
from tests.support.patience import eventually_blocking


class Queue:
    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def enqueue(self, kind: str, args: dict[str, Any] | None = None, **options: Any) -> str:
        answer = self._client.post("/v1/jobs", json={"kind": kind, "args": args or {}, **options})
        assert answer.status_code == 202, answer.text
        job: str = answer.json()["id"]
        return job

    def job(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get(f"/v1/jobs/{job}").json()
        return found

    def lane(self, name: str, **changes: Any) -> dict[str, Any]:
        path = f"/v1/admin/workers/lanes/{name}"
        answer = self._client.patch(path, json=changes) if changes else self._client.get(path)
        if answer.status_code == 404:
            answer = self._client.post(path, json=changes)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def until(self, job: str, *statuses: str) -> dict[str, Any]:
        found: dict[str, Any] = wait_for(lambda: self.job(job), lambda found: found["status"] in statuses)
        return found

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        answer = self._client.post(path, json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found


def wait_for(look: Callable[[], Any], met: Callable[[Any], bool]) -> Any:
    seen: list[Any] = []

    def looked() -> bool:
        seen[:] = [look()]
        return met(seen[0])

    eventually_blocking(looked, "what the queue is to say", lambda: seen[0])
    return seen[0]


@contextmanager
def queue_of(site: Site, role: str = "platform_admin", **options: Any) -> Iterator[Queue]:
    with site.client(site.token(role, **options)) as client:
        yield Queue(client)
