"""What a call of a task says to the queue, and what it refuses to say."""

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.compat.conftest import Drain
from tests.support.patience import seconds_left

from fenceline import InvalidArgs, NotFound, Unsupported
from fenceline.compat.celery import Celery, signature
from fenceline.compat.celery.exceptions import TimeoutError as CeleryTimeoutError
from fenceline.compat.celery.result import AsyncResult


@pytest.fixture
def add(celery: Celery) -> object:
    @celery.task(name="add")
    def add(x: int, y: int = 0) -> int:
        return x + y

    return add


def test_times_queue_and_arguments_are_those_of_the_call(celery: Celery, add: object) -> None:
    task = celery.tasks["add"]
    celery.conf.timezone = "Europe/Berlin"
    eta = datetime(2040, 7, 1, 12, 0)  # noqa: DTZ001 - without a zone: that of the app, as in Celery
    record = task.apply_async((2,), {"y": 3}, eta=eta, queue="mail", time_limit=5).job.get()
    assert record.args == {"args": [2], "kwargs": {"y": 3}}
    assert record.run_at == datetime(2040, 7, 1, 12, 0, tzinfo=ZoneInfo("Europe/Berlin"))
    assert (record.lane, record.timeout, record.status) == ("mail", 5, "scheduled")
    assert task.apply_async((1,), queue="celery").job.get().lane == "default"
    expiring = task.apply_async((1,), countdown=60, expires=3600).job.get()
    assert expiring.expires_at is not None
    assert expiring.run_at is not None
    assert timedelta(minutes=50) < expiring.expires_at - expiring.created_at < timedelta(minutes=70)
    assert timedelta(seconds=59) < expiring.run_at - expiring.created_at < timedelta(seconds=61)
    exact = datetime(2040, 1, 1, tzinfo=UTC)
    assert task.apply_async((1,), expires=exact).job.get().expires_at == exact


@pytest.mark.parametrize(
    "broker, first", [("amqp://guest@localhost//", "nine"), ("redis://localhost/0", "zero"), ("sentinel://a", "zero")]
)
def test_priorities_are_the_right_way_round(celery: Celery, add: object, drain: Drain, broker: str, first: str) -> None:
    """Nine is the highest for RabbitMQ, zero for Redis."""
    celery.conf.broker_url = broker
    started: list[str] = []

    @celery.task(name="note")
    def note(name: str) -> None:
        started.append(name)

    celery.sync.lanes.set("default", slots=1)
    note.apply_async(("zero",), priority=0)
    note.apply_async(("nine",), priority=9)
    assert drain() == 2
    assert started[0] == first


def test_a_task_says_its_own_queue_and_priority_and_a_route_says_it_for_those_that_do_not(celery: Celery) -> None:
    celery.conf.task_routes = {"mail.*": {"queue": "mail", "priority": 7}, "*": "rest"}
    celery.conf.task_default_queue = "unused"

    @celery.task(name="mail.send")
    def send() -> None: ...

    @celery.task(name="mail.own", queue="own", priority=3)
    def own() -> None: ...

    @celery.task(name="other")
    def other() -> None: ...

    found = [task.delay().job.get() for task in (send, own, other)]
    assert [(record.lane, record.priority) for record in found] == [("mail", 7), ("own", 3), ("rest", 0)]


def test_arguments_that_do_not_fit_or_would_change_are_refused(celery: Celery, add: object) -> None:
    task = celery.tasks["add"]
    with pytest.raises(TypeError, match="arguments of add do not fit: missing a required argument: 'x'"):
        task.delay()
    with pytest.raises(InvalidArgs, match="args of add cannot be kept as JSON: Object of type datetime"):
        task.delay(datetime.now(UTC))
    with pytest.raises(Unsupported, match="a call of add cannot take link: use a chain"):
        task.apply_async((1,), link=task.s(2))
    with pytest.raises(Unsupported, match="a call of add cannot take serializer"):
        task.apply_async((1,), serializer="pickle")
    with pytest.raises(Unsupported, match="call the task like a function"):
        task.apply((1,))
    with pytest.raises(Unsupported, match=r"map\(\) is not there: use group"):
        task.map([1])
    with pytest.raises(Unsupported, match=r"link_error\(\) is not there: .*policy"):
        task.s(1).on_error(task.s(2))
    assert celery.sync.jobs.list().items == []


def test_a_task_is_still_a_function(celery: Celery, add: object) -> None:
    assert celery.tasks["add"](1, 2) == 3
    assert celery.tasks["add"].s(1)(5) == 6  # further arguments come first
    assert celery.tasks["add"].si(1)(5) == 1


def test_tasks_are_sent_by_name(celery: Celery, add: object, drain: Drain) -> None:
    sent = celery.send_task("add", (1, 2))
    signed = signature("add", (3,), app=celery).delay()
    unknown = celery.send_task("elsewhere", [json.dumps({})])
    assert drain() == 2
    assert (sent.get(seconds_left()), signed.get(seconds_left())) == (3, 3)
    assert (unknown.state, unknown.ready(), unknown.result) == ("PENDING", False, None)
    with pytest.raises(CeleryTimeoutError, match=r"has not ended after 0.1 seconds"):
        unknown.get(timeout=0.1)


def test_a_result_is_looked_up_in_the_app_made_last(celery: Celery, add: object, drain: Drain) -> None:
    sent = celery.send_task("add", (1, 2))
    drain()
    found = AsyncResult(sent.id)
    assert found.get(seconds_left()) == 3
    assert found.date_done == sent.job.get().finished_at


def test_an_id_that_nobody_has_is_pending_but_nothing_to_wait_for(celery: Celery) -> None:
    nothing = celery.AsyncResult("no-such-task")
    assert (nothing.id, nothing.status, nothing.ready(), nothing.failed()) == ("no-such-task", "PENDING", False, False)
    with pytest.raises(NotFound, match="no task has the id 'no-such-task'"):
        nothing.get(timeout=seconds_left())


def test_revoke_by_id_and_by_the_app(celery: Celery, add: object) -> None:
    task = celery.tasks["add"]
    mine = task.apply_async((1,), task_id="mine")
    celery.control.revoke("mine")
    assert mine.state == "REVOKED"
    mine.revoke()  # it is over, which is all right
    mine.forget()
    assert mine.state == "PENDING"
    with pytest.raises(Unsupported, match=r"app.control has no purge"):
        celery.control.purge()
