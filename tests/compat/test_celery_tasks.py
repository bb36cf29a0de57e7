"""How a task's options become a handler's, and how its attempts end."""

import logging

import pytest
from tests.compat.conftest import Drain
from tests.support.patience import seconds_left

import fenceline.compat.celery
import fenceline.compat.celery.exceptions
import fenceline.compat.celery.signals
from fenceline import JobFailed, Unsupported
from fenceline.client.app_parts import app_parts
from fenceline.client.handler_parts import handler_parts
from fenceline.compat.celery import Celery, Task, shared_task
from fenceline.compat.celery.exceptions import Ignore, Reject
from fenceline.errors import InvalidName


def test_a_failure_is_final_unless_the_task_asks_for_another_try(celery: Celery, drain: Drain) -> None:
    class Odd(Exception): ...

    @celery.task(name="plain")
    def plain() -> None:
        raise Odd("as it is")

    @celery.task(name="again", autoretry_for=(Exception,), dont_autoretry_for=(KeyError,), default_retry_delay=0)
    def again(key: str) -> None:
        raise KeyError(key) if key else Odd("anything")

    final, spared, tried = plain.delay(), again.delay("key"), again.delay("")
    drain()
    with pytest.raises(JobFailed, match="as it is"):  # no built-in exception, so it is not made anew
        final.get(seconds_left())
    error = final.job.get().error
    assert error is not None
    assert error["type"].endswith("Odd")
    assert "as it is" in (final.traceback or "")
    assert final.job.get().attempt == spared.job.get().attempt == 1
    assert isinstance(spared.get(seconds_left(), propagate=False), KeyError)
    assert (tried.job.get().attempt, tried.job.get().max_attempts) == (4, 4)  # max_retries is 3


def test_backoff_is_the_policy_of_the_kind(celery: Celery) -> None:
    @celery.task(name="grows", autoretry_for=(OSError,), retry_backoff=5, retry_backoff_max=60, max_retries=7)
    def grows() -> None: ...

    @celery.task(name="endless", max_retries=None, retry_jitter=False, retry_backoff=True)
    def endless() -> None: ...

    @celery.task(name="steady", retry_kwargs={"max_retries": 1, "countdown": 30})
    def steady() -> None: ...

    says = {
        name: handler_parts(app_parts(celery).handlers[name]).declaration for name in ("grows", "endless", "steady")
    }
    assert says["grows"]["max_attempts"] == 8
    assert says["grows"]["retry"] == {"backoff": "exponential", "base": 5.0, "jitter": 0.1, "max_delay": 60}
    assert says["endless"]["max_attempts"] == 1000
    assert (says["endless"]["retry"]["base"], says["endless"]["retry"]["jitter"]) == (1.0, 0.0)
    assert (says["steady"]["max_attempts"], says["steady"]["retry"]["base"]) == (2, 30)
    assert grows.delay().job.get().max_attempts == 8


def test_retry_says_when_and_can_only_lower_the_limit(celery: Celery, drain: Drain) -> None:
    @celery.task(name="later", bind=True)
    def later(self: Task) -> None:
        self.retry(countdown=600)

    @celery.task(name="once", bind=True, default_retry_delay=0)
    def once(self: Task) -> None:
        raise self.retry(exc=ValueError("enough"), max_retries=1)

    @celery.task(name="more", bind=True)
    def more(self: Task) -> None:
        self.retry(max_retries=9)

    waiting, limited, refused = later.delay(), once.delay(), more.delay()
    drain()
    assert (waiting.state, waiting.job.get().status) == ("RETRY", "scheduled")
    with pytest.raises(ValueError, match="enough"):
        limited.get(seconds_left())
    assert limited.job.get().attempt == 2
    with pytest.raises(JobFailed, match=r"retry\(max_retries=9\) is above 3: set it in the decorator"):
        refused.get(seconds_left())
    with pytest.raises(Unsupported, match="later was called like a function"):
        later()


def test_a_task_tells_its_state_and_is_not_to_wait_for_another(celery: Celery, drain: Drain) -> None:
    seen: list[object] = []

    @celery.task(name="leaf")
    def leaf() -> int:
        return 1

    @celery.task(name="tells", bind=True)
    def tells(self: Task) -> str:
        self.update_state(state="PROGRESS", meta={"current": 1, "total": 4, "what": "pages"})
        mine = self.AsyncResult(str(self.request.id))
        seen.extend([mine.state, mine.info, self.request.delivery_info["routing_key"], self.request.called_directly])
        return str(leaf.delay().get(timeout=1))

    result = tells.delay()
    drain()
    assert seen == ["PROGRESS", {"current": 1, "total": 4, "what": "pages"}, "default", False]
    with pytest.raises(RuntimeError, match=r"result.get\(\) within a task"):
        result.get(seconds_left())


def test_a_base_class_brings_attributes_and_options(celery: Celery, drain: Drain) -> None:
    class WithConnection(Task):
        autoretry_for = (ConnectionError,)
        max_retries = 1
        default_retry_delay = 0
        opened = 0

        @property
        def connection(self) -> str:
            type(self).opened += 1
            return "open"

    @celery.task(name="query", base=WithConnection, bind=True)
    def query(self: WithConnection) -> str:
        if self.request.retries == 0:
            raise ConnectionError("lost")
        return self.connection

    result = query.delay()
    drain()
    assert (result.get(seconds_left()), WithConnection.opened) == ("open", 1)


def test_a_rate_is_that_of_a_lane_of_its_own(celery: Celery, drain: Drain) -> None:
    celery.conf.task_routes = {"*": "rest"}

    @celery.task(name="slowly", rate_limit="30/h")
    def slowly() -> str:
        return "done"

    waiting = [slowly.delay() for _ in range(3)]
    assert drain() == 1, "two minutes have to pass"
    assert sorted(result.state for result in waiting) == ["PENDING", "PENDING", "SUCCESS"]
    lane = celery.sync.lanes.get("slowly")
    assert lane.rate_per_second == pytest.approx(30 / 3600)
    assert lane.burst == 1
    celery.sync.lanes.set("slowly", rate_per_second=None)  # an operator knows better
    assert drain() == 2
    assert slowly.apply_async(queue="mail").job.get().lane == "mail"


def test_a_task_expires_unless_the_call_says_when(celery: Celery) -> None:
    @celery.task(name="soon", expires=60)
    def soon() -> None: ...

    def seconds(expires: float | None = None) -> float:
        record = soon.apply_async(expires=expires).job.get()
        assert record.expires_at is not None
        return (record.expires_at - record.created_at).total_seconds()

    assert seconds() == pytest.approx(60, abs=30)
    assert seconds(expires=600) == pytest.approx(600, abs=30)


def test_results_that_are_no_json_fail_and_nothing_ends_as_revoked(celery: Celery, drain: Drain) -> None:
    @celery.task(name="opaque")
    def opaque() -> object:
        return object()

    @celery.task(name="nothing")
    def nothing() -> None:
        raise Ignore("not today")

    @celery.task(name="rejected", autoretry_for=(Exception,))
    def rejected() -> None:
        raise Reject("not for us")

    bad, ignored, refused = opaque.delay(), nothing.delay(), rejected.delay()
    drain()
    with pytest.raises(JobFailed, match="not for us"):
        refused.get(seconds_left())
    assert refused.job.get().attempt == 1
    with pytest.raises(Unsupported, match=r"use self\.retry"):
        Reject("later", requeue=True)
    with pytest.raises(JobFailed, match="the result of opaque cannot be kept as JSON"):
        bad.get(seconds_left())
    assert ignored.state == "REVOKED"


@pytest.mark.parametrize(
    "options, says",
    [
        ({"rate_limit": "10/m", "queue": "mail"}, "both queue and rate_limit: a rate belongs to a lane"),
        ({"rate_limit": "10/d"}, 'use "10/s", "10/m" or "10/h"'),
        ({"soft_time_limit": 5}, "cannot take soft_time_limit: use time_limit"),
        ({"serializer": "pickle"}, "args and results are JSON"),
        ({"flavour": "mint"}, "cannot take flavour: Fenceline has nothing like it"),
        ({"base": type("Hooked", (Task,), {"on_failure": print})}, "hook on_failure, which nothing would call"),
    ],
)
def test_what_cannot_be_had_is_said_where_it_is_written(celery: Celery, options: dict[str, object], says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        celery.task(name="wrong", **options)(print)
    assert "wrong" not in app_parts(celery).handlers


def test_more_that_cannot_be_had(celery: Celery) -> None:
    async def coroutine() -> None: ...

    with pytest.raises(Unsupported, match="is async"):
        celery.task(name="coroutine")(coroutine)
    with pytest.raises(InvalidName, match="give the task a name="):
        celery.task(name="Capital.Letters")(logging.info)
    with pytest.raises(Unsupported, match=r"has no current_task: use @app.task"):
        _ = fenceline.compat.celery.current_task
    with pytest.raises(Unsupported, match=r"has no SoftTimeLimitExceeded: a task with time_limit="):
        _ = fenceline.compat.celery.exceptions.SoftTimeLimitExceeded
    with pytest.raises(Unsupported, match=r"has no task_failure: use @app.middleware"):
        _ = fenceline.compat.celery.signals.task_failure
    with pytest.raises(AttributeError, match="no attribute 'task_faliure'"):
        _ = fenceline.compat.celery.signals.task_faliure
    with pytest.raises(Unsupported, match="workers are Fenceline's own"):
        celery.worker_main([])
    with pytest.raises(Unsupported, match=r"Celery\(…\) cannot take loader"):
        Celery("other", loader="x")


def test_shared_tasks_belong_to_every_app_and_are_sent_by_the_last(celery: Celery, drain: Drain) -> None:
    @shared_task(name="tests.shared")
    def shared() -> str:
        return "ours"

    assert "tests.shared" in app_parts(celery).handlers
    result = shared.delay()
    drain()
    assert result.get(seconds_left()) == "ours"
    later = Celery("later")
    assert "tests.shared" in app_parts(later).handlers
    assert shared.app is later
